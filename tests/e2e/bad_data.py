"""Data files that are wrong in some 720 ways, and odd ones that are good.

The cases are in _bad_files.py (text) and _bad_blocks.py, what is asked of each in _bad_check.py:
every mistake in every packing, every damage of a whole file in every format.
"""

from __future__ import annotations

import os
import unittest
from concurrent.futures import ThreadPoolExecutor

import _bad_check
from _bad_files import FORMATS, all_text_cases, good_variants, write_job
from _bad_types import Format


class BadData(_bad_check.BadFiles):
    def test_each_is_named(self) -> None:
        self.check_all([*all_text_cases(), *self.block_cases()], least=710)

    def test_what_looks_odd_but_is_good(self) -> None:
        def try_it(fmt: Format, path: str, content: bytes) -> str:
            """The folder it ran in, below that of the test."""
            folder = self.folder / f"{fmt.name}_{path}"
            write_job(fmt, path, folder)
            (folder / path).write_bytes(content)
            for command in (["data", "validate", "--job", "job.yaml"], ["run", "job.yaml"]):
                ended = _bad_check.run(command, folder, locked=False)
                self.assertEqual(ended.code, 0, f"{folder.name}: {ended.text}")
            return folder.name

        with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
            tried = [(fmt, pool.submit(try_it, fmt, path, content)) for fmt in FORMATS
                     for path, content in good_variants(fmt).items()]
        for fmt, folder in tried:
            self.assert_exact(f"{folder.result()}/out", fmt.records)


if __name__ == "__main__":
    unittest.main()
