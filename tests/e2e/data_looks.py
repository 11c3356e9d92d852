"""What flux data says of files without a job: their format, their texts, and what cannot be."""

from __future__ import annotations

import bz2
import lzma
import unittest

from _support import SMALLEST_MODEL, Case, example, write_data

LINES = [f"{i % 2} user:{i} price:0.5\n" for i in range(50)]


class DataLooks(Case):
    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def test_a_bad_line_is_named_and_does_not_hide_the_format(self) -> None:
        self.write("a.txt", "".join([*LINES[:2], "1 user:x\n", *LINES[2:]]))
        self.assertEqual(self.flux("data", "head", "a.txt", "-n", "2").out, "".join(LINES[:2]))
        done = self.flux("data", "head", "a.txt", code=None)
        self.assert_refused(done, "a.txt:3:8: key 'x' of slot 'user'")
        self.assertEqual(done.out, "".join(LINES[:2]), "what comes before it is shown")
        done = self.flux("data", "validate", "a.txt", code=2)
        self.assertIn("a.txt:3:8: ", done.err)
        self.assertIn("1 of 51 records are bad (format feasign)", done.err)

    def test_only_what_is_shown_has_to_be_right(self) -> None:
        self.write("a.txt", "".join([*LINES * 40, "1 user:x\n"]))
        for shown in (1, 10, 2000):
            out = self.flux("data", "head", "a.txt", "-n", str(shown)).out
            self.assertEqual(out, "".join((LINES * 40)[:shown]))

    def test_texts_are_shown_as_they_are_written(self) -> None:
        self.write("a.csv", 'label,sid,city,tags\n1,s7,"Rome, old",3|5\n0,s8,Köln,\n')
        self.assertEqual(self.flux("data", "head", "a.csv").out,
                         "1 sid=s7 city:Rome,\\x20old tags:3 tags:5\n0 sid=s8 city:Köln\n")
        self.write("a.vw", "1 |tags red green:2\n-1 |tags blue\n")
        self.assertEqual(self.flux("data", "head", "a.vw").out,
                         "1 tags:red:1 tags:green:2\n0 tags:blue:1\n")

    def test_one_odd_number_does_not_make_a_slot_a_dense_feature(self) -> None:
        self.write("a.txt", "".join([*LINES * 10, "1 user:0.5 price:0.5\n"]))
        done = self.flux("data", "validate", "a.txt", code=2)
        self.assertIn("a.txt:501:8: key '0.5' of slot 'user'", done.err)

    def test_what_lines_hold_is_kept_or_refused(self) -> None:
        self.write("a.txt", "1 sid=7 user:3\n0 sid=8 user:4\n")
        self.flux("data", "convert", "a.txt", "--to", "csv", "--out", "a.csv")
        self.assertEqual((self.folder / "a.csv").read_text().split("\n")[0], "label,sid,user")
        self.assert_refused(self.flux("data", "convert", "a.txt", "--to", "vw", "--out", "a.vw",
                                      code=None), "cannot hold groups")

    def test_the_transform_of_a_job_stays_in_what_convert_prints(self) -> None:
        write_data(self.folder / "a.tsv", 20)
        for transform, told in (("none", True), ("log1p", False)):
            done = self.flux("data", "convert", "a.tsv", "--job", example("ctr_dnn"), "--set",
                             f"data.dense_transform={transform}", "--to", "csv", "--out", "a.csv")
            self.assertEqual("  dense_transform: none\n" in done.out, told, done.out)

    def test_several_labels_of_csv(self) -> None:
        self.write("a.csv", "label_click,label_buy,user\n1,0,17\n0,1,4\n")
        self.assertEqual(self.flux("data", "head", "a.csv").out, "1,0 user:17\n0,1 user:4\n")

    def test_a_byte_order_mark_is_skipped(self) -> None:
        self.write("a.txt", "\ufeff" + "".join(LINES))
        self.assertEqual(self.flux("data", "head", "a.txt", "-n", "50").out, "".join(LINES))

    def test_other_packings_are_named(self) -> None:
        text = "".join(LINES).encode()
        for name, packed in (("xz", lzma.compress(text)), ("bzip2", bz2.compress(text))):
            (self.folder / "a.txt").write_bytes(packed)
            self.assert_refused(self.flux("data", "head", "a.txt", code=None),
                                f"a.txt: is packed with {name}, which is not read",
                                f"data.pipe: [{name}, -dc]")

    def convert(self, *arguments: str) -> str:
        """Refused; the reason. Nothing is written."""
        done = self.flux("data", "convert", *arguments, "--out", "out.new", code=None)
        self.assert_refused(done)
        self.assertFalse((self.folder / "out.new").exists())
        return done.err

    def test_names_that_no_job_could_say_are_refused_before_writing(self) -> None:
        for header, name in (("label,user id", "slot 'user id'"), ("label,a.b", "slot 'a.b'"),
                             ("label\u00e9,user", "label 'label\\xc3\\xa9'"),
                             ("label," + "x" * 65, "slot 'xxx")):
            self.write("a.csv", f"{header}\n1,17\n0,4\n")
            for to in ("blocks", "feasign"):
                self.assertIn(f"the {name}", self.convert("a.csv", "--to", to))

    def test_the_section_can_be_read_whatever_the_names_are(self) -> None:
        self.write("a.csv", "label,null,user\n1,17,3\n0,4,5\n")
        section = self.flux("data", "convert", "a.csv", "--to", "multislot", "--out",
                            "a, b: [c].txt").out
        (self.folder / "job.yaml").write_text(section + SMALLEST_MODEL)
        self.assertIn("2 record(s) in 1 file(s) are good",
                      self.flux("data", "validate", "--job", "job.yaml").out)

    def test_files_that_are_not_packed_are_not_named_so(self) -> None:
        self.write("a.txt", "".join(LINES))
        for to in ("blocks", "parquet"):
            done = self.flux("data", "convert", "a.txt", "--to", to, "--out", f"a.{to}.zst",
                             code=None)
            self.assert_refused(done, f"--out a.{to}.zst: {to} is not written as zstd")
            self.assertFalse((self.folder / f"a.{to}.zst").exists())

    def test_keys_that_slots_would_share_need_a_job(self) -> None:
        self.write("a.txt", "1 item:3 seen:3 seen:4\n0 item:4\n")
        self.write("one.txt", "1 item:3\n0 item:4\n")
        job = self.write("job.yaml", "data: {format: feasign, train: [a.txt], "
                         "slots: [{name: item}, {name: seen, keys: item}]}" + SMALLEST_MODEL)
        to = ("--to", "feasign", "--out", "out.txt")
        self.assertIn("note: without --job every slot gets keys of its own",
                      self.flux("data", "convert", "a.txt", *to).err)
        self.assertNotIn("note:", self.flux("data", "convert", "one.txt", *to).err)
        self.assertNotIn("note:", self.flux("data", "convert", "--job", job, *to).err)
        first = (self.folder / "out.txt").read_text().split()
        self.assertEqual(first[1].split(":")[1], first[2].split(":")[1], "the same key in both")


if __name__ == "__main__":
    unittest.main()
