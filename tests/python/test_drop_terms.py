"""What tools/drop_terms.py leaves out of a function."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from drop_terms import ADDEND, drops


def mutants(body: str, head: str = "void backward()") -> list[str]:
    """The body after each mutation, without what checks types."""
    text = f"{head} {{ {body} }}"
    found = []
    for drop in drops(text, 0, len(text)):
        changed = text[: drop.start] + drop.after + text[drop.end :]
        found.append(changed[len(head) + 3 : -2])
    return found


class DropTerms(unittest.TestCase):
    def test_each_addend_goes_once(self) -> None:
        self.assertEqual(
            mutants("dx[c] = a[c] + b[c] - c * d;"),
            [
                f"dx[c] = kept<decltype(a[c] + b[c] - c * d)>({rest});"
                for rest in ("b[c] - c * d", "a[c] - c * d", "a[c] + b[c]")
            ],
        )

    def test_a_minus_stays_when_what_stands_before_it_goes(self) -> None:
        self.assertIn("dx[c] = kept<decltype(a - b)>(-b);", mutants("dx[c] = a - b;"))

    def test_addends_in_brackets_come_before_factors(self) -> None:
        found = mutants("return s * (1.0F + x);", "float derivative()")
        rests = [one.partition(">(")[2] for one in found]
        self.assertEqual(rests, ["s * (x));", "s * (1.0F));", "(1.0F + x));", "s);"])

    def test_a_lone_number_goes_as_a_whole(self) -> None:
        self.assertEqual(mutants("dx[c] = dy[c];"), ["dx[c] = dropped(dy[c]);"])
        self.assertEqual(mutants("dx[c] += dy[c];"), ["dx[c] += dropped(dy[c]);"])
        self.assertEqual(mutants("dx[c] *= by;"), ["dx[c] *= kept<decltype(by)>(1);"])

    def test_both_sides_of_a_choice(self) -> None:
        self.assertEqual(
            mutants("return x > 0 ? 1.0F : (y > 0 ? z : 0.0F);", "float slope()"),
            [
                f"return kept<decltype(x > 0 ? 1.0F : (y > 0 ? z : 0.0F))>({rest});"
                for rest in (
                    "x > 0 ? dropped(1.0F) : (y > 0 ? z : 0.0F)",
                    "x > 0 ? 1.0F : kept<decltype((y > 0 ? z : 0.0F))>"
                    "((y > 0 ? dropped(z) : 0.0F))",
                )
            ],
        )

    def test_statements_that_add(self) -> None:
        self.assertEqual(
            mutants("if (a) add_scaled(dy, x, n, dx);"), ["if (a) static_cast<void>(0);"]
        )
        self.assertEqual(mutants("return scatter_rows(a, b);"), ["return;"])

    def test_behind_headers_and_over_lines(self) -> None:
        found = mutants("for (size_t c = 0; c < n; ++c)\n  if (f(c)) {\n dx[c] =\n    a + b; }")
        self.assertEqual(len(found), 2)
        self.assertTrue(all(one.startswith("for (size_t c = 0; c < n; ++c)\n") for one in found))

    def test_sizes_and_pointers_stay(self) -> None:
        for body in (
            "rows_.batch = step.batch + 1;",
            "const size_t at = t * dim + c;",
            "const float *x = row.x[0] + t * dim, *dy = row.dy + 1;",
            "float* dx[8] = {}; dx[i] = row.dx[i] + width();",
            "y += pairs + 1;",
            "runs.read(x, r, y);",
        ):
            self.assertEqual(mutants(body), [], body)

    def test_floats_that_are_declared(self) -> None:
        found = mutants("const float by = f(x), along = g + h;")
        self.assertEqual(
            found,
            [
                "const float by = dropped(f(x)), along = g + h;",
                "const float by = f(x), along = kept<decltype(g + h)>(h);",
                "const float by = f(x), along = kept<decltype(g + h)>(g);",
            ],
        )

    def test_comments_do_not_count(self) -> None:
        self.assertEqual(mutants("// dx[c] = a + b;\n run();"), [])

    def test_an_addend_of_each_kind_of_line_is_found(self) -> None:
        text = "static Own own_gradient() { return {dy * (u + v), dy}; }"
        kinds = [drop.kind for drop in drops(text, 0, len(text))]
        self.assertEqual(kinds.count(ADDEND), 2)


if __name__ == "__main__":
    unittest.main()
