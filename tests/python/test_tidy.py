"""tools/tidy.py finds each sin planted in a small tree, and nothing in the clean one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from collections.abc import Mapping
from pathlib import Path

TIDY = Path(__file__).resolve().parents[2] / "tools" / "tidy.py"
HEADER = "// Thing: what it is.\n// Threads: none.\n#pragma once\n\n"
CLEAN = {
    "flux/base/CMakeLists.txt": "flux_library(base EXTERNAL fmt::fmt)\n",
    "flux/base/thing.h": HEADER + "#include <string>\n",
    "flux/base/thing.cc": '#include "flux/base/thing.h"\n\nint f() { return 1; }\n',
    "flux/table/CMakeLists.txt": "flux_library(table DEPS base)\n",
    "flux/table/row.cc": '#include "flux/base/thing.h"\n',
    "flux/table/row_test.cc": '#include "flux/testing/sim.h"\n',
    "flux/testing/CMakeLists.txt": "flux_library(testing DEPS base table)\n",
    "flux/testing/sim.h": HEADER + '#include "flux/table/row.h"\n',
    "flux/server/CMakeLists.txt": "flux_library(server DEPS base table)\n",
    "flux/worker/CMakeLists.txt": "flux_library(worker\n  DEPS base table  # no role\n)\n",
    "flux/main/CMakeLists.txt": "add_executable(flux main.cc)\n",
    "flux/main/main.cc": '#include "flux/worker/w.h"\nint main() { std::cout << getenv("A"); }\n',
    "flux/job/CMakeLists.txt": "flux_library(job DEPS base)\n",
    "flux/job/yaml.cc": "void g() { throw 1; }\n",
    "tools/tool.py": "import json\n\nprint(json.dumps(1))\n",
    "README.md": "See `flux/base/thing.{h,cc}`, `flux/*/row.cc` and `flux/nn/<name>.cc`.\n",
}


Changes = Mapping[str, str | None]


class Tree:
    """The clean tree in a temporary folder, with some files changed (None: removed)."""

    def __init__(self, changes: Changes) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tidy.")
        self.root = Path(self.folder.name)
        for name, text in {**CLEAN, **changes}.items():
            if text is not None:
                path = self.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def tidy(self, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, str(TIDY), "--root", str(self.root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class TidyTest(unittest.TestCase):
    def setUp(self) -> None:
        self.trees: list[Tree] = []

    def tearDown(self) -> None:
        for tree in self.trees:
            tree.folder.cleanup()

    def plant(self, changes: Changes) -> Tree:
        tree = Tree(changes)
        self.trees.append(tree)
        return tree

    def expect_sins(self, changes: Changes, *expected: str) -> None:
        """Exactly these "file:line: ... [rule]" come out, told by place and rule."""
        status, output = self.plant(changes).tidy()
        lines = [line for line in output.splitlines() if not line.startswith("tidy:")]
        found = [f"{line.split(': ')[0]} {line[line.rindex('['):]}" for line in lines]
        self.assertEqual(sorted(found), sorted(expected), output)
        self.assertEqual(status, 1 if expected else 0)

    def test_clean_tree(self) -> None:
        self.expect_sins({})

    def test_include_layers(self) -> None:
        up = '#include "flux/table/row.h"\n'
        self.expect_sins({"flux/base/up.cc": "\n" + up}, "flux/base/up.cc:2 [layers]")
        self.expect_sins({"flux/base/up_test.cc": up}, "flux/base/up_test.cc:1 [layers]")
        sim = '#include "flux/testing/sim.h"\n'
        self.expect_sins({"flux/table/row.cc": sim}, "flux/table/row.cc:1 [layers]")
        main = "flux_library(main DEPS base table testing)\n"
        self.expect_sins({"flux/main/CMakeLists.txt": main, "flux/main/sim_command.cc": sim})
        self.expect_sins({"flux/main/CMakeLists.txt": main, "flux/main/a.cc": sim},
                         "flux/main/a.cc:1 [layers]")
        self.expect_sins({"flux/table/a.cc": '#include "row.h"\n'}, "flux/table/a.cc:1 [include]")
        self.expect_sins({"flux/table/a.cc": '#include "generated.inc"\n'})

    def test_roles_never_meet(self) -> None:
        role = '#include "flux/server/s.h"\n'
        self.expect_sins({"flux/worker/w.cc": role}, "flux/worker/w.cc:1 [layers]")
        # Not even when the edge is declared.
        self.expect_sins(
            {"flux/worker/CMakeLists.txt": "flux_library(worker DEPS base server)\n",
             "flux/worker/w.cc": role},
            "flux/worker/CMakeLists.txt:1 [layers]", "flux/worker/w.cc:1 [layers]",
        )

    def test_declared_edges(self) -> None:
        self.expect_sins(
            {"flux/base/CMakeLists.txt": "flux_library(base DEPS table)\n"},
            "flux/base/CMakeLists.txt:1 [layers]", "flux/table/CMakeLists.txt:1 [layers]",
        )
        self.expect_sins({"flux/new/a.cc": "\n"}, "flux/new/CMakeLists.txt:1 [layers]")

    def test_header_contract(self) -> None:
        name = "flux/base/h.h"
        self.expect_sins({name: "// One line.\n#pragma once\n"}, f"{name}:1 [contract]")
        self.expect_sins({name: "#pragma once\n"}, f"{name}:1 [contract]")
        guard = "// One.\n// Two.\n#ifndef H\n#define H\n#endif\n"
        self.expect_sins({name: guard}, f"{name}:3 [pragma]")
        self.expect_sins({name: "// One.\n// Two.\n\n#pragma once\n"})

    def test_lengths(self) -> None:
        name = "flux/base/long.cc"
        self.expect_sins({name: "\n" * 600})
        self.expect_sins({name: "\n" * 601}, f"{name}:601 [file-length]")
        self.expect_sins({name: "//" + "x" * 98 + "\n"})
        self.expect_sins({name: "//" + "x" * 99 + "\n"}, f"{name}:1 [columns]")

    def test_function_length(self) -> None:
        name = "flux/base/f.cc"
        body = "  g();\n"
        self.expect_sins({name: "void f() {\n" + body * 68 + "}\n"})
        self.expect_sins({name: "void f() {\n" + body * 69 + "}\n"}, f"{name}:1 [function-length]")
        # Braces in literals and comments do not count; scopes are not functions.
        tricky = "namespace a {\nclass alignas(64) B {\n" + body * 80 + "};\n}  // }\n"
        self.expect_sins({name: tricky})
        text = 'void f() {\n  char c = \'}\'; auto s = "}"; auto r = R"x(}")x"; int n = 1\'0;\n'
        long = "\nclass A {\n public:\n" + text + body * 69 + "}\n};\n"
        self.expect_sins({name: long}, f"{name}:4 [function-length]")
        loop = "void f(O o = {}) {\n  for (;;) {\n" + body * 67 + "  }\n}\n"
        self.expect_sins({name: loop}, f"{name}:1 [function-length]")

    def test_python_function_length(self) -> None:
        text = "def f() -> None:\n" + "    g()\n" * 70
        self.expect_sins({"tools/a.py": text}, "tools/a.py:1 [function-length]")

    def test_blanks(self) -> None:
        name = "flux/base/b.cc"
        self.expect_sins({name: "int a; \n"}, f"{name}:1 [trailing]")
        self.expect_sins({name: "\tint a;\n"}, f"{name}:1 [tab]")
        self.expect_sins({name: "int a;"}, f"{name}:1 [newline]")
        self.expect_sins({"Makefile": "a:\n\techo\n", "tests/bad/job.yaml": "a:\t1 \n"})

    def test_marks(self) -> None:
        for mark in ("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"):
            self.expect_sins({"flux/base/m.cc": f"// {mark}: x\n"}, "flux/base/m.cc:1 [mark]")
        self.expect_sins({"flux/base/m.cc": 'auto t = "/tmp/a.XXXXXX"; int kTodo;\n'})

    def test_banned_calls(self) -> None:
        for text in ("system(a);", "popen(a, b);", "strcpy(a, b);", "std::sprintf(a, b);",
                     "rand();", "::getenv(a);", "std::cout << 1;", "throw 1;"):
            self.expect_sins({"flux/base/b.cc": f"\n{text}\n"}, "flux/base/b.cc:2 [ban]")
        harmless = "// rand()\nsnprintf(a, b, c); x.rand(); y->system(1); auto s = \"throw\";\n"
        self.expect_sins({"flux/base/b.cc": harmless})
        self.expect_sins({"flux/main/b.cc": "throw 1; std::cout << getenv(a);\n"})
        self.expect_sins({"flux/job/b.cc": "throw 1; getenv(a);\n"}, "flux/job/b.cc:1 [ban]")
        slow = "void f() { std::this_thread::sleep_for(a); }\n"
        self.expect_sins({"flux/base/a_test.cc": slow}, "flux/base/a_test.cc:1 [ban]")
        self.expect_sins({"flux/base/a.cc": slow})

    def test_banned_python(self) -> None:
        for text in ("import pickle", "from pickle import loads", "eval(a)", "exec(a)",
                     "os.system(a)", "run(a, shell=True)", "yaml.load(a)"):
            self.expect_sins({"tools/a.py": f"\n{text}\n"}, "tools/a.py:2 [ban]")
        self.expect_sins({"tools/a.py": '# eval(a)\ns = "exec(a)"\nyaml.safe_load(a)\n'})
        self.expect_sins({"tools/a.py": "def (\n"}, "tools/a.py:1 [syntax]")

    def test_big_files(self) -> None:
        self.expect_sins({"tests/golden.bin": "a" * 500 * 1024})
        big = "a" * (500 * 1024 + 1)
        self.expect_sins({"tests/golden.bin": big}, "tests/golden.bin:1 [file-size]")

    def test_machine_paths(self) -> None:
        for folder in ("work", "root", "farm"):
            text = f"cd /{folder}/x\n"
            self.expect_sins({"docs/a.md": text}, "docs/a.md:1 [machine-path]")
        self.expect_sins({"docs/a.md": "cd build/" + "work/x; the /root of all\n"})

    def test_paths_in_docs(self) -> None:
        for path in ("flux/base/gone.h", "flux/base/thing.{h,py}", "flux/nn/*.cc", "tools/gone.py"):
            self.expect_sins({"docs/a/b.md": f"x\nsee `{path}`\n"}, "docs/a/b.md:2 [doc-path]")
        self.expect_sins({"docs/a.md": "`flux run a.yaml`, `tools/tool.py`, `flux/base/`\n"})

    def test_known_sins_may_only_shrink(self) -> None:
        known = "tools/tidy_known.txt"
        sins = {"flux/base/b.cc": "throw 1;\nthrow 2;\n"}
        tree = self.plant({**sins, known: "# why\n2 flux/base/b.cc ban\n"})
        self.assertEqual(tree.tidy(), (0, ""))
        status, output = self.plant({**sins, known: "1 flux/base/b.cc ban\n"}).tidy()
        self.assertEqual(status, 1)
        self.assertIn("flux/base/b.cc:2: throw", output)
        tree = self.plant({**sins, known: "# why\n3 flux/base/b.cc ban\n1 flux/x.cc tab\n"})
        status, output = tree.tidy()
        self.assertEqual((status, output.count("--shrink")), (1, 2), output)
        self.assertEqual(tree.tidy("--shrink"), (0, ""))
        self.assertEqual((tree.root / known).read_text(), "# why\n2 flux/base/b.cc ban\n")
        # --shrink never takes a new sin in.
        (tree.root / "flux/base/c.cc").write_text("throw 1;\n")
        self.assertEqual(tree.tidy("--shrink")[0], 1)

    def test_build_outputs_are_not_looked_at(self) -> None:
        self.expect_sins({"build/a.cc": "throw 1;\n", "build-asan/flux/x.cc": "throw 1;\n"})


if __name__ == "__main__":
    unittest.main()
