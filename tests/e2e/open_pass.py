"""A job that ended in the middle of a pass, run again with other settings or other data."""

from __future__ import annotations

import unittest

from _support import SMALLEST_MODEL, Case, Done, sets

JOB = """
name: half
output: out
threads: 1
epochs: 50
data: {format: feasign, train: a.txt, batch: 10, slots: [{name: user}]}
""" + SMALLEST_MODEL
LINES = [f"{i % 2} user:{i % 97}\n" for i in range(1000)]
TOTAL = 50 * len(LINES)


class HalfTrained(Case):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "a.txt").write_text("".join(LINES))
        (self.folder / "b.txt").write_text("".join(LINES[:500]))
        (self.folder / "job.yaml").write_text(JOB)

    def half(self, **fields: object) -> None:
        self.flux("run", "job.yaml", *sets(**fields), *sets(stop__examples=10_000))
        self.assertEqual(self.summary("out")["state"], "stopped")

    def again(self, **fields: object) -> Done:
        return self.flux("run", "job.yaml", *sets(**fields), code=None)

    def go_on(self, **fields: object) -> Done:
        done = self.again(**fields)
        self.assertEqual(done.code, 0, done.text)
        found = self.summary("out")
        self.assertEqual((found["state"], found["lost"], found["doubled"]), ("complete", 0, 0))
        self.assertEqual(found["applied_once"], TOTAL)
        return done


class OpenPass(HalfTrained):
    def test_another_file_is_not_ignored(self) -> None:
        self.half()
        self.assert_refused(self.again(data__train="b.txt"), "pass pass-0 was begun with a.txt",
                            "the job names b.txt now", "until the pass is closed")
        done = self.go_on(data__train="[./a.txt, b.txt]")
        self.assertIn("note: 1 new file(s) match, but pass pass-0 was cut without them", done.out)

    def test_sources_of_a_shuffle_are_files_too(self) -> None:
        self.half(data__global_shuffle=True)
        self.assert_refused(self.again(data__global_shuffle=True, data__train="b.txt"),
                            "pass pass-0 was begun with a.txt", "the job names b.txt now")
        self.go_on(data__global_shuffle=True)

    def test_a_glob_still_names_its_files(self) -> None:
        self.half(data__train=f"{self.folder}/[a].txt")
        self.assertNotIn("new file", self.go_on(data__train="./a.t?t").out)

    def test_fewer_bad_records_than_were_set_aside(self) -> None:
        with (self.folder / "a.txt").open("a") as file:
            file.write("1 user:x\n" * 3)
        self.half(data__bad_records=5)
        for allowed in (0, 2):
            self.assert_refused(self.again(data__bad_records=allowed),
                                "pass pass-0 was begun with 3 bad records set aside",
                                f"data.bad_records is {allowed} now")
        self.go_on(data__bad_records=3)

    def test_settings_have_the_names_of_the_job(self) -> None:
        self.half()
        for field, value, told in (("data__batch", 20, "data.batch: 20, was 10"),
                                   ("data__shuffle", False, "data.shuffle: false, was true"),
                                   ("data__global_shuffle", True,
                                    "data.global_shuffle: true, was false"),
                                   ("data__pipe", "[cat]", 'data.pipe: ["cat"], was none')):
            with self.subTest(field):
                done = self.again(**{field: value})
                self.assert_refused(done, "was begun with another cut of the data", "  " + told)
                for inner in ("shuffle_seed", "batch_size", "format"):
                    self.assertNotIn(inner, done.err)
        self.go_on()


class Shuffled(HalfTrained):
    """OUTPUT/shuffled is made by flux, and made again by it."""

    records = "out/shuffled/pass-00000.blocks"
    sources = "out/shuffled/pass-00000.sources.json"

    def lose(self) -> None:
        for name in (self.records, self.sources):
            (self.folder / name).unlink()

    def damage(self) -> None:
        path = self.folder / self.records
        text = bytearray(path.read_bytes())
        text[len(text) // 2] ^= 1
        path.write_bytes(text)

    def test_it_is_made_again(self) -> None:
        for change in (self.lose, (self.folder / self.records).unlink, self.damage):
            self.flux("run", "job.yaml", "--fresh", *sets(data__global_shuffle=True,
                                                          stop__examples=10_000))
            before = (self.folder / self.records).read_bytes()
            change()
            done = self.go_on(data__global_shuffle=True)
            self.assertIn(f"note: {self.records} was lost or damaged and is made again", done.out)
            self.assertEqual((self.folder / self.records).read_bytes(), before)

    def test_other_records_are_not_taken_for_it(self) -> None:
        self.half(data__global_shuffle=True)
        self.lose()
        good = (self.folder / "a.txt").read_text()
        (self.folder / "a.txt").write_text(good.replace("user:1", "user:2"))
        self.assert_refused(self.again(data__global_shuffle=True),
                            "are not those that it was begun with", "--fresh")
        (self.folder / "a.txt").write_text(good)
        self.go_on(data__global_shuffle=True)


if __name__ == "__main__":
    unittest.main()
