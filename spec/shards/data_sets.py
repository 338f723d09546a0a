"""Data sets, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from build_shards import EITHER, NO_LABEL, OTHER_BYTES, REFUSE, DataSet, File, Recipe, Shard
from valid import mixed, modelled, named, one, vector


def two_shards() -> dict[str, Shard]:
    return {"a.l3s": mixed(), "b.l3s": modelled()}


def data_sets() -> Iterator[Recipe]:
    def valid(name: str, reason: str, data_set: DataSet) -> Recipe:
        return Recipe(f"sets/{name}", "5", reason, data_set)

    def bad(name: str, reason: str, data_set: DataSet) -> Recipe:
        control = "sets/classes" if data_set.classes else "sets/two"
        return Recipe(f"sets/{name}", "5", reason, data_set, REFUSE, REFUSE, control=control, reads=False)

    def unverified(name: str, reason: str, data_set: DataSet) -> Recipe:
        return Recipe(f"sets/{name}", "5", reason, data_set, verifying=REFUSE, control="sets/two", reads=False)

    def either(name: str, reason: str, data_set: DataSet) -> Recipe:
        return Recipe(f"sets/{name}", "5", reason, data_set, EITHER, EITHER, control="sets/two", reads=False)

    def two(**more: str | None) -> DataSet:
        """Members by their paths, with `__` for points."""
        return DataSet(two_shards(), members={name.replace("__", "."): value for name, value in more.items()})

    def index_of(data_set: DataSet) -> bytes:
        return data_set.files()["index.json"]

    def edited(edit: Callable[[bytes], bytes]) -> DataSet:
        return DataSet(two_shards(), index=edit(index_of(two())))

    def extra(value: str) -> DataSet:
        return two(more=value)

    classes = ["cat", "dog", "", "dog"]
    yield valid("two", "Two shards.", two())
    yield valid("none", "No shard.", DataSet({}))
    yield valid("of_an_empty_shard", "A shard without samples.", DataSet({"a": Shard(roles=[]), "b": one()}))
    yield valid("empty_shard_twice", "A shard without samples, named twice.", DataSet({"a": Shard(roles=[])}, members={
        "shards": "[{0}, {0}]".format(index_of(DataSet({"a": Shard(roles=[])})).decode().split("[")[2].split("]")[0])}))
    yield valid("classes", "Names of all labels that there are.", DataSet(two_shards(), classes))
    yield valid("classes_more", "More names than labels.", DataSet(two_shards(), [f"c{i}" for i in range(1000)]))
    yield valid("file_of_any_name", "Names of files that only look like more.", DataSet(
        {"..a": one(), "b\\c": named(b"a"), ".d": named(b"b"), "\u00e4 .l3s": named(b"c")}))
    yield valid("file_escaped", "The name of a file with escapes.", two(shards__0__file='"\\u0061\\u002el3s"'))
    yield valid("format_escaped", "The format with escapes.", two(format='"l3\\u0020d\\u0061ta set"'))
    yield valid("white_space", "White space wherever it may be.", edited(
        lambda text: b"\r\n\t " + text.replace(b",", b"\n ,\t").replace(b"{", b"{\r\n").replace(b": ", b" :\n")))
    yield valid("no_white_space", "No white space.", edited(lambda text: text.replace(b": ", b":").replace(b", ", b",")
                                                            .rstrip()))
    yield valid("members_more", "Members of all types that are not known.", two(
        more='{"a": [1, -2.5e-3, true, false, null, "\\u00e4\\ud83d\\ude00\\"\\\\\\/\\b\\f\\n\\r\\t", {}, []]}',
        shards__0__more="[[[]]]", shards__1__Bytes='"7"', Format="1"))
    yield valid("member_more_twice", "A member that is not known, twice.", edited(
        lambda text: text.replace(b'{"format"', b'{"more": 1, "more": "2", "format"')))
    yield valid("member_more_of_a_huge_number", "Numbers beyond all limits in members that are not known.",
                extra("[1e400, -1e400, 1e-400, " + "9" * 5000 + ", 1e99999999999999999999]"))
    yield valid("members_of_shards_within", "Members of the names of known ones, where they mean nothing.",
                extra('{"samples": "x", "shards": 7, "version": 2}'))
    yield bad("number_with_a_fraction", "A whole number with a fraction.", two(samples="12.0"))
    yield bad("number_with_an_exponent", "A whole number with an exponent.", two(groups="9e0"))
    yield valid("digest_of_capitals", "Hexadecimal digits may be capitals.", DataSet(two_shards(), members={
        "shards.0.digest": '"' + index_of(two()).decode().split('"digest": "')[1][:32].upper() + '"'}))
    yield valid("other_files", "Files in the folder that are no shards.", DataSet(
        two_shards(), other_files={"README": b"", "c.l3s": b"no shard", "image.l3": vector("invalid/index_check")}))
    yield valid("many_shards", "1100 shards, often more than a process may have open at once.", DataSet(
        {f"{i:04}.l3s": named(b"%d" % i) for i in range(1100)}))

    # What is open: limits of a reader, and what RFC 8259 leaves to it
    yield either("nested_deep", "100000 lists in each other, in a member that is not known.",
                 extra("[" * 100000 + "]" * 100000))
    yield either("nested_deep_objects", "100000 objects in each other, in a member that is not known.",
                 extra('{"a":' * 100000 + "0" + "}" * 100000))
    yield either("byte_order_mark", "A byte order mark, which RFC 8259 lets a reader ignore.",
                 edited(lambda text: b"\xef\xbb\xbf" + text))
    yield either("surrogate_alone", "Half of a surrogate pair as an escape, in a member that is not known.",
                 extra('"\\ud800"'))

    # The folder
    yield bad("index_absent", "No index.json.", DataSet(two_shards(), without="index.json"))
    yield bad("index_empty", "An index.json of no bytes.", DataSet(two_shards(), index=b""))
    yield bad("shard_absent", "A shard that is not there.", DataSet(two_shards(), without="b.l3s"))
    yield bad("shard_cut", "A shard without its last byte, of which index.json knows.", DataSet(
        two_shards(), changes={"b.l3s": [f"cut {File(modelled()).size - 1}"]}))
    yield bad("shard_in_violation", "A shard that is as described, but is none.", DataSet(
        two_shards(), changes={"b.l3s": ["entry.1.width 0"]}))
    yield bad("shard_head_in_violation", "A shard that is as described, but whose head is none.", DataSet(
        two_shards(), changes={"b.l3s": ["head.version 2"]}))

    # JSON
    for name, reason, edit in (
        ("trailing_text", "Text after the object.", lambda text: text + b"x"),
        ("trailing_object", "An object after the object.", lambda text: text + b"{}"),
        ("trailing_zero", "A zero byte after the object.", lambda text: text + b"\0"),
        ("trailing_comma", "A comma after the last member.", lambda text: text.rstrip()[:-1] + b",}"),
        ("list_comma", "A comma after the last shard.", lambda text: text.replace(b"}]", b"},]")),
        ("unterminated", "An object that does not end.", lambda text: text.rstrip()[:-1]),
        ("unterminated_string", "A text that does not end.",
         lambda text: text.rstrip()[:-1] + b', "more": "' + b"a" * 50),
        ("unterminated_escape", "A text that ends in an escape.", lambda text: text.rstrip()[:-1] + b', "more": "\\'),
        ("unterminated_unicode", "A text that ends in an escape of four digits.",
         lambda text: text.rstrip()[:-1] + b', "more": "\\u00'),
        ("unterminated_number", "A text that ends in a number.", lambda text: text.rstrip()[:-1] + b', "more": 1e'),
        ("not_utf8", "A byte that is not UTF-8.", lambda text: text.replace(b"l3 data", b"l3 \xffdata")),
        ("utf8_too_long", "A letter in two bytes, which is not UTF-8.",
         lambda text: text.replace(b"{", b'{"\xc1\xa1": 0, ', 1)),
        ("utf8_surrogate", "A surrogate in three bytes, which is not UTF-8.",
         lambda text: text.replace(b"{", b'{"\xed\xa0\x80": 0, ', 1)),
        ("utf8_cut", "A letter of which a byte is missing, in a member that is not known.",
         lambda text: text.replace(b"{", b'{"more": "\xe5\x90", ', 1)),
        ("utf8_above", "A letter beyond Unicode, which is not UTF-8.",
         lambda text: text.replace(b"{", b'{"\xf4\x90\x80\x80": 0, ', 1)),
        ("utf16", "UTF-16.", lambda text: text.decode().encode("utf-16")),
        ("list", "A list of the object.", lambda text: b"[" + text + b"]"),
        ("number_alone", "A number and nothing else.", lambda text: b"0"),
        ("control_character", "A line feed in a text.", lambda text: text.replace(b"{", b'{"a\nb": 0, ', 1)),
        ("zero_in_text", "A zero byte in a text.", lambda text: text.replace(b"{", b'{"a\0b": 0, ', 1)),
        ("escape_unknown", "An escape that JSON does not have.", lambda text: text.replace(b"{", b'{"\\x": 0, ', 1)),
        ("escape_digits", "An escape whose digits are none.", lambda text: text.replace(b"{", b'{"\\u00g0": 0, ', 1)),
        ("quotes_single", "Single quotes.", lambda text: text.replace(b'"', b"'")),
        ("comment", "A comment.", lambda text: text.replace(b"{", b"{/**/", 1)),
        ("nan", "NaN, which is no number of JSON.", lambda text: text.replace(b"{", b'{"more": NaN, ', 1)),
        ("infinity", "-Infinity, which is no number of JSON.",
         lambda text: text.replace(b"{", b'{"more": -Infinity, ', 1)),
        ("number_with_plus", "A number with a plus.", lambda text: text.replace(b"{", b'{"more": +1, ', 1)),
        ("number_with_zero", "A number that begins with a zero.", lambda text: text.replace(b"{", b'{"more": 01, ', 1)),
        ("number_of_a_point", "A number that ends with a point.", lambda text: text.replace(b"{", b'{"more": 1., ', 1)),
        ("number_hexadecimal", "A hexadecimal number.", lambda text: text.replace(b"{", b'{"more": 0x1, ', 1)),
        ("word", "A word that is none of JSON's.", lambda text: text.replace(b"{", b'{"more": True, ', 1)),
        ("space_not_of_json", "A form feed as white space.", lambda text: b"\f" + text),
        ("nested_deep_unterminated", "100000 lists in each other that do not end.", lambda text: b"[" * 100000),
        ("nested_deep_mixed", "100000 lists and objects that do not end.", lambda text: b'[{"a":' * 50000),
    ):
        yield bad(name, reason, edited(edit))

    # Members
    for name in ("format", "version", "samples", "groups", "classes", "shards"):
        yield bad(f"no_{name}", f"No member `{name}`.", two(**{name: None}))
    for name in ("file", "bytes", "samples", "groups", "index_check", "digest"):
        yield bad(f"no_{name}_of_a_shard", f"A shard without `{name}`.", two(**{f"shards__1__{name}": None}))
    numbers = {"version": "version", "samples": "samples", "groups": "groups", "bytes_of_a_shard": "shards__1__bytes",
               "samples_of_a_shard": "shards__1__samples", "groups_of_a_shard": "shards__1__groups",
               "index_check_of_a_shard": "shards__1__index_check"}
    right = {"version": 1, "samples": 12, "groups": 9, "bytes_of_a_shard": File(modelled()).size,
             "samples_of_a_shard": 6, "groups_of_a_shard": 6,
             "index_check_of_a_shard": File(modelled()).get("footer.index_check")}
    for name, member in numbers.items():
        given = right[name]
        yield bad(f"{name}_as_text", f"The number `{name}` as a text.", two(**{member: f'"{given}"'}))
        yield bad(f"{name}_more", f"The number `{name}`, and 1.", two(**{member: str(given + 1)}))
        yield bad(f"{name}_half", f"The number `{name}`, and a half.", two(**{member: f"{given}.5"}))
        yield bad(f"{name}_negative", f"The number `{name}`, less than 0.", two(**{member: str(-given - 1)}))
        yield bad(f"{name}_huge", f"1e400 for the number `{name}`.", two(**{member: "1e400"}))
        yield bad(f"{name}_2_64_more", f"The number `{name}`, and 2^64.", two(**{member: str(given + (1 << 64))}))
        yield bad(f"{name}_2_32_more", f"The number `{name}`, and 2^32.", two(**{member: str(given + (1 << 32))}))
    for name, value in (("null", "null"), ("true", "true"), ("list", "[12]"), ("object", "{}")):
        yield bad(f"samples_{name}", f"`samples` that is {value}.", two(samples=value))
    yield bad("samples_of_5000_digits", "`samples` of 5000 digits.", two(samples="9" * 5000))
    yield bad("samples_above_2_53", "`samples` above 2^53, as described of a shard, too.", two(
        samples=str((1 << 53) + 7), shards__0__samples=str((1 << 53) + 1)))
    yield bad("samples_below_and_above", "Shards with a sample too many and one too few.", two(
        shards__0__samples="7", shards__1__samples="5"))
    yield bad("groups_below_and_above", "Shards with a group too many and one too few.", two(
        shards__0__groups="4", shards__1__groups="5"))
    yield bad("samples_sum_wraps", "A shard of -2^63 samples twice.", two(
        shards__0__samples=str(-(1 << 63)), shards__1__samples=str(-(1 << 63)), samples="0"))
    yield bad("index_check_of_the_other_shard", "The index checks of two shards, one for the other.", two(
        shards__0__index_check=str(File(modelled()).get("footer.index_check")),
        shards__1__index_check=str(File(mixed()).get("footer.index_check"))))
    yield bad("format_other", "Another format.", two(format='"l3 data"'))
    yield bad("format_of_capitals", "The format in capitals.", two(format='"L3 data set"'))
    yield bad("format_and_zero", "The format, and a zero byte as an escape.", two(format='"l3 data set\\u0000"'))
    yield bad("format_number", "A number for the format.", two(format="0"))
    yield bad("version_0", "Version 0.", two(version="0"))
    yield bad("version_null", "null for the version.", two(version="null"))
    yield bad("version_false", "false for the version.", two(version="false"))
    yield bad("classes_object", "An object for the classes.", two(classes="{}"))
    yield bad("classes_text", "A text for the classes.", two(classes='"cat"'))
    yield bad("classes_null", "null for the classes.", two(classes="null"))
    yield bad("classes_of_numbers", "A number among the classes.", two(classes='["a", "b", "c", "d", 5]'))
    yield bad("shards_object", "An object for the shards.", two(shards="{}"))
    yield bad("shards_null", "null for the shards.", two(shards="null"))
    yield bad("shards_of_texts", "Texts for the shards.", two(shards='["a.l3s", "b.l3s"]'))
    yield bad("shards_of_lists", "A list for a shard.", two(shards="[[]]"))
    yield bad("shards_of_null", "null for a shard.", two(shards="[null]"))
    yield bad("shards_less", "A shard less than the samples come from.", edited(
        lambda text: text[: text.rindex(b', {"file"')] + b"]}"))
    yield bad("shard_twice", "A shard twice, and its samples and groups: its names are in two shards.", DataSet(
        {"a.l3s": one()}, members={"samples": "2", "groups": "2", "shards": "[{0}, {0}]".format(
            index_of(DataSet({"a.l3s": one()})).decode().split("[")[2].split("]")[0])}))
    for name, value in (("outside", "../two/a.l3s"), ("below", "sub/a.l3s"), ("here", "./a.l3s"), ("root", "/dev/null"),
                        ("dot", "."), ("two_dots", ".."), ("empty", ""), ("slash_last", "a.l3s/")):
        yield bad(f"file_{name}", f"The file `{value}`.", two(shards__0__file=f'"{value}"'))
    yield bad("file_slash_escaped", "A file outside, with an escape for the slash.",
              two(shards__0__file='"..\\u002fa.l3s"'))
    yield bad("file_slash_escaped_short", "A file below, with the short escape for the slash.",
              two(shards__0__file='"sub\\/a.l3s"'))
    yield bad("file_zero", "A zero byte in a file's name, behind the right one.",
              two(shards__0__file='"a.l3s\\u0000"'))
    yield bad("file_number", "A number for a file's name.", two(shards__0__file="0"))
    yield bad("file_long", "A file's name of 100000 letters.", two(shards__0__file='"' + "a" * 100000 + '"'))
    yield bad("file_of_the_other_shard", "The file of the other shard.", two(shards__0__file='"b.l3s"'))
    yield bad("file_of_the_index", "The index as a shard.", two(shards__0__file='"index.json"'))
    sizes = [str(File(shard).get("footer.size")) for shard in two_shards().values()]
    yield valid("index_bytes", "The sizes of the indexes.", two(
        shards__0__index_bytes=sizes[0], shards__1__index_bytes=sizes[1]))
    yield valid("index_bytes_of_one", "The size of one index.", two(shards__1__index_bytes=sizes[1]))
    yield bad("index_bytes_of_the_other_shard", "The size of the other shard's index.",
              two(shards__0__index_bytes=sizes[1]))
    yield bad("index_bytes_zero", "No bytes of index.", two(shards__0__index_bytes="0"))
    yield bad("index_bytes_huge", "An index beyond the file.", two(shards__0__index_bytes=str(1 << 53)))
    yield bad("index_bytes_text", "The size of an index as a text.", two(shards__0__index_bytes=f'"{sizes[0]}"'))
    yield bad("index_bytes_twice", "The size of an index, twice.", edited(lambda text: text.replace(
        b'"file"', b'"index_bytes": ' + sizes[0].encode() + b', "index_bytes": ' + sizes[0].encode() + b', "file"', 1)))
    yield bad("digest_short", "A digest of 31 digits.", two(shards__0__digest='"' + "0" * 31 + '"'))
    yield bad("digest_long", "A digest of 33 digits.", two(shards__0__digest='"' + "0" * 33 + '"'))
    yield bad("digest_of_no_digits", "A digest with a letter that is no digit.",
              two(shards__0__digest='"' + "0" * 31 + 'g"'))
    yield bad("digest_number", "A number for a digest.", two(shards__0__digest="0" * 1))
    yield bad("digest_prefix", "A digest with 0x.", two(shards__0__digest='"0x' + "0" * 30 + '"'))
    for name, before, again in (
        ("format", b'{"format"', b'{"format": "l3 data set", "format"'),
        ("version", b'"version"', b'"version": 1, "version"'),
        ("samples", b'"samples": 12', b'"samples": 12, "samples": 12'),
        ("shards", b'"shards"', b'"shards": [], "shards"'),
        ("file", b'"file": "a.l3s"', b'"file": "c.l3s", "file": "a.l3s"'),
        ("digest_escaped", b'"file": "a.l3s"', b'"d\\u0069gest": "", "file": "a.l3s"'),
    ):
        yield bad(f"twice_{name}", f"The member `{name.split('_')[0]}` twice.",
                  DataSet(two_shards(), replace=(before, again)))

    # Labels and names
    yield bad("label_without_name", "A label that is one beyond the classes.", DataSet(two_shards(), classes[:3]))
    yield bad("label_most_without_name", "The greatest label.", DataSet(
        two_shards(), classes, changes={"a.l3s": [f"entry.{i}.label {NO_LABEL - 1}" for i in range(3)]}))
    yield bad("name_in_two_shards", "A name that two shards have.", DataSet(
        {"a.l3s": mixed(), "b.l3s": Shard([replace(one().samples[0], name=b"train/cat/0002.png")])}))
    yield bad("name_in_shards_apart", "A name that the first and the last of three shards have.", DataSet(
        {"a.l3s": one(), "b.l3s": named(b"x"), "c.l3s": Shard([replace(one().samples[0], kind=OTHER_BYTES)])}))

    # What only verifying finds
    yield unverified("digest", "Another digest of a shard.", two(shards__1__digest='"' + "0" * 32 + '"'))
    yield unverified("digest_of_the_other_shard", "The digest of the other shard.", DataSet(two_shards(), members={
        "shards.0.digest": '"' + index_of(two()).decode().split('"digest": "')[2][:32] + '"'}))
    yield unverified("sample_check", "A sample of the last shard with another check.", DataSet(
        two_shards(), changes={"b.l3s": ["entry.5.check ^1"]}))
    yield unverified("sample_byte", "A byte of a sample of the first shard.", DataSet(
        two_shards(), changes={"a.l3s": ["file.4097 0"]}))
    yield unverified("model", "A model that is none, in the last shard.", DataSet(
        two_shards(), changes={"b.l3s": ["model_bytes.0.0 255"]}))
    yield unverified("zeros", "A byte between two samples.", DataSet(two_shards(), changes={"a.l3s": ["file.4095 9"]}))
