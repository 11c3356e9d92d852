"""The text formats of other systems: good lines and mistakes, rows for FORMATS of _bad_files.py."""

from __future__ import annotations

from _bad_types import LINES, Format, Mistake

LAYERS = """\
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [sparse, label]}"""
HUGE = "18446744073709551616"

MULTISLOT = Format(
    "multislot",
    "format: multislot, slots: [{name: user}, {name: item}], dense: [price], "
    "columns: [label, user, item, price]",
    [f"1 {i % 2} 1 {i} 2 {i * 3} {i * 3 + 1} 1 0.{i}" for i in range(1, LINES + 1)],
    [Mistake("NaN label", "1 nan 1 1 1 1 1 0", "label"),
     Mistake("too few values", "1 1 1 1 4 1 2", "'item'"),
     Mistake("a slot is missing", "1 1 1 1", "'item'.*missing"),
     Mistake("a slot too many", "1 1 1 1 1 1 1 0.5 1 7", "goes on with"),
     Mistake("2^64 id", f"1 1 1 {HUGE} 1 1 1 0", "'user'"),
     Mistake("negative count", "1 1 -1 1 1 1 1 0", "'user'"),
     Mistake("huge count", "1 1 99999999999 1 1 1 1 0", "'user'"),
     Mistake("NaN number", "1 1 1 1 1 1 1 nan", "'price'"),
     Mistake("two numbers", "1 1 1 1 1 1 2 1 2", "'price'"),
     Mistake("blank line", "", "line"),
     Mistake("NUL byte", "1 1 1 1\0 1 1 1 0", "'user'"),
     Mistake("invalid UTF-8", "1 1 1 \udcff 1 1 1 0", "'user'")],
    LAYERS)

LIBSVM = Format(
    "libsvm", "format: libsvm, slots: [{name: item, values: true}]",
    [f"{i % 2} {i}:0.5 {i + 100}:1 {i + 200}" for i in range(1, LINES + 1)],
    [Mistake("NaN label", "nan 1:1", "label 'nan' is not a number"),
     Mistake("no label", "1:1 2:1", "data.weights"),
     Mistake("2^64 id", f"1 {HUGE}:1", f"key '{HUGE}' of slot 'item' is not a whole number"),
     Mistake("negative id", "1 -1:1", "key '-1' of slot 'item' is not a whole number"),
     Mistake("NaN value", "1 3:nan", "value 'nan' of slot 'item' is not a number"),
     Mistake("id of letters", "1 abc:1", "key 'abc' of slot 'item'"),
     Mistake("blank line", "", "no label; a line begins with its label"),
     Mistake("three parts", "1 1:2:3", "value '2:3' of slot 'item' is not a number"),
     Mistake("NUL byte", "1 1\0:1", "'1.x00' of slot 'item'"),
     Mistake("invalid UTF-8", "1 \udcff:1", "'.xff' of slot 'item'"),
     Mistake("duplicate qid", "1 qid:1 3:1 qid:2", "'qid:' comes twice")],
    LAYERS)

LIBFFM = Format(
    "libffm", "format: libffm, slots: [{name: user, values: true}, {name: item, values: true}]",
    [f"{i % 2} 0:{i}:1 1:{i + 100}:0.5" for i in range(1, LINES + 1)],
    [Mistake("NaN label", "nan 0:1:1", "label 'nan' is not a number"),
     Mistake("unknown field", "1 2:1:1", "no field '2'; data.slots has 2"),
     Mistake("2^64 id", f"1 0:{HUGE}:1", f"key '{HUGE}' of slot 'user' is not a whole number"),
     Mistake("NaN value", "1 1:3:nan", "value 'nan' of slot 'item' is not a number"),
     Mistake("one part", "1 7", "'7' is no feature"),
     Mistake("field of letters", "1 a:1:1", "no field 'a'"),
     Mistake("blank line", "", "no label; a line begins with its label"),
     Mistake("NUL byte", "1 0:1\0:1", "'1.x00' of slot 'user'"),
     Mistake("invalid UTF-8", "1 1:\udcff:1", "'.xff' of slot 'item'")],
    LAYERS)

VW = Format(
    "vw",
    "format: vw, slots: [{name: user}, {name: item, values: true}], dense: [price]",
    [f"{i % 2} |user {i} |item {i * 3}:0.5 {i * 3 + 1} |dense price:0.{i}"
     for i in range(1, LINES + 1)],
    [Mistake("NaN label", "nan |user 1", "label 'nan' is not a number"),
     Mistake("no label", "|user 1", "no label; a line begins with its label"),
     Mistake("unknown namespace", "1 |usr 1", "'usr' is declared, did you mean 'user'"),
     Mistake("2^64 id", f"1 |user {HUGE}", f"key '{HUGE}' of slot 'user' is not a whole number"),
     Mistake("NaN value", "1 |item 3:nan", "value 'nan' of slot 'item' is not a number"),
     Mistake("NaN number", "1 |dense price:nan", "'nan' of dense feature 'price'"),
     Mistake("blank line", "", "no '.'; the features of a line begin behind a bar"),
     Mistake("value where none is", "1 |user 1:2", "'1' of slot 'user' has the value 2"),
     Mistake("duplicate number", "1 |dense price:1 price:2", "'price' comes twice"),
     Mistake("duplicate number, apart", "1 |dense price:1 |user 1 |dense price:2",
             "'price' comes twice"),
     Mistake("NUL byte", "1 |user 1\0", "'1.x00' of slot 'user'"),
     Mistake("invalid UTF-8", "1 |item \udcff", "'.xff' of slot 'item'")],
    LAYERS)

CSV = Format(
    "csv", "format: csv, slots: [{name: user}, {name: item, values: true}], dense: [price]",
    ["label,user,item,price",
     *(f"{i % 2},{i},{i * 3}:0.5|{i * 3 + 1},0.{i}" for i in range(1, LINES))],
    [Mistake("NaN label", "nan,1,2,0.5", "label 'label' is 'nan', not a number"),
     Mistake("too few cells", "1,1,2", "3 cells; expected 4"),
     Mistake("too many cells", "1,1,2,0.5,9", "5 cells; expected 4"),
     Mistake("2^64 id", f"1,{HUGE},2,0.5", f"key '{HUGE}' of slot 'user' is not a whole number"),
     Mistake("NaN number", "1,1,2,nan", "'nan' of dense feature 'price'"),
     Mistake("NaN value", "1,1,2:nan,0.5", "value 'nan' of slot 'item' is not a number"),
     Mistake("open quote", '1,"1,2,0.5', "quote that is not closed"),
     Mistake("blank line", "", "label 'label' is missing"),
     Mistake("no label", ",1,2,0.5", "label 'label' is missing"),
     Mistake("NUL byte", "1,1\0,2,0.5", "'1.x00' of slot 'user'"),
     Mistake("invalid UTF-8", "1,1,\udcff,0.5", "'.xff' of slot 'item'")],
    LAYERS, header=1)

# Of csv, in place of its header.
HEADERS = [
    Mistake("duplicate column", "label,user,item,user", "has two columns 'user'"),
    Mistake("unknown column", "label,user,item,prize",
            "its 4th column 'prize' is not declared in the job, did you mean 'price'"),
    Mistake("missing column", "label,user,item", "has no column 'price', which the job declares"),
    Mistake("invalid UTF-8 in the header", "label,user,item,\udcff", "4th column '.xff' is not")]

# Slots of texts, a good line and one with a key that is no text; {} stands for the key.
TEXT_SLOTS = [
    ("feasign", "1 tag:{}"), ("multislot", "1 1 1 {}"), ("libsvm", "1 {}:1"),
    ("libffm", "1 0:{}:1"), ("vw", "1 |tag {}"), ("csv", "1,{}"), ("csv", '1,"a|{}"')]
NO_KEYS = ["\udcff", "na\udcefve", "b\udce2\udc82", "a\0"]

SENTENCE_LAYERS = """\
    - {name: loss, op: skip_gram_loss, table: weight, window: 2}"""
NO_TEXT = [
    Mistake("NUL byte", "a b\0 c", "x00, which no text has"),
    Mistake("invalid UTF-8", "a \udcff b", "xff is not UTF-8"),
    Mistake("Latin-1", "a na\udcefve b", "xef is not UTF-8"),
    Mistake("a cut character", "a b\udce2\udc82", "xe2 is not UTF-8"),
    Mistake("an overlong form", "a \udcc0\udc80 b", "xc0 is not UTF-8")]
SENTENCES = Format(
    "sentences", "format: sentences, vocabulary: vocab.txt, subsample: 0",
    [f"a b w{i} c naïve" for i in range(LINES)], NO_TEXT, SENTENCE_LAYERS,
    table="dim: 2", beside={"vocab.txt": "a 9\nb 5\nnaïve 1\n"})

VOCABULARY = Format(
    "vocabulary", "format: sentences, vocabulary: {path}, subsample: 0",
    ["a 99", "b 98", "naïve 3", *(f"word{i} {LINES - i}" for i in range(3, LINES))],
    [Mistake("no count", "word", "a count must follow the word"),
     Mistake("no word", " 7", "a word is missing"),
     Mistake("blank line", "", "a word is missing"),
     Mistake("a count of letters", "word x7", "'x7' is no count"),
     Mistake("a count of 0", "word 0", "'0' is no count"),
     Mistake("a negative count", "word -1", "'-1' is no count"),
     Mistake("a fraction", "word 1.5", "'1.5' is no count"),
     Mistake("2^64 of one", f"word {HUGE}", f"'{HUGE}' is no count"),
     Mistake("two words", "one word 7", "'word 7' is no count"),
     Mistake("a word twice", "a 7", "'a' comes twice"), *NO_TEXT],
    SENTENCE_LAYERS, empty="holds no word", table="dim: 2",
    beside={"good.txt": "a b a\nb naïve\n"}, train="good.txt")

ALL = [MULTISLOT, LIBSVM, LIBFFM, VW, CSV, SENTENCES, VOCABULARY]
