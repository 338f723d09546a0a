"""Shards that a reader refuses, and those that it opens but that do not verify."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from build_shards import NO_LABEL, OTHER_BYTES, REFUSE, File, Recipe, Sample, Shard
from valid import (
    long_model,
    long_name,
    long_role,
    many,
    many_models,
    mixed,
    modelled,
    modelled_by_bits,
    named,
    one,
    roles,
    vector,
    with_image,
)

U32 = 0xFFFFFFFF
U64 = 0xFFFFFFFFFFFFFFFF


def refused_shards() -> Iterator[Recipe]:
    def bad(name: str, section: str, reason: str, control: str, shard: Shard, *changes: str) -> Recipe:
        return Recipe(f"refused/{name}", section, reason, shard, REFUSE, REFUSE, changes, f"valid/{control}")

    def bad_one(name: str, section: str, reason: str, *changes: str) -> Recipe:
        return bad(name, section, reason, "one", one(), *changes)

    def bad_mixed(name: str, section: str, reason: str, *changes: str) -> Recipe:
        return bad(name, section, reason, "mixed", mixed(), *changes)

    def bad_model(name: str, section: str, reason: str, *changes: str) -> Recipe:
        return bad(name, section, reason, "modelled", modelled(), *changes)

    # 2. Layout of a shard
    whole = File(mixed())
    cuts = {"0": 0, "1": 1, "63": 63, "64": 64, "128": 128, "4095": 4095, "4096": 4096, "4160": 4160,
            "index": whole.begin, "index_part": whole.begin + 64, "entries": whole.begin + 6 * 80,
            "footer": whole.size - 64, "byte": whole.size - 1}
    for cut, size in cuts.items():
        yield bad_mixed(f"cut_{cut}", "2", f"The first {size} bytes alone.", f"cut {size}")
    yield bad_mixed("byte_more", "2", "A byte after the footer.", "append x:00")
    yield bad_mixed("zeros_more", "2", "64 zero bytes after the footer.", "append x:" + "00" * 64)
    footer = bytes(File(one()).footer).hex()
    yield bad_one("footer_twice", "2.2", "The footer once more: the index does not end where it begins.",
                  f"append x:{footer}")

    # 2.1 The head
    for i in (0, 3, 7):
        yield bad_one(f"head_signature_{i}", "2.1", f"Byte {i} of the head's signature.", f"file.{i} 0x21")
    yield bad_one("head_signature_of_the_footer", "2.1", "The footer's signature in the head.",
                  "head.signature =footer.signature")
    yield bad_one("head_signature_of_an_image", "2.1", "The signature of an L3 file in the head.", "file.3 0x49")
    yield bad_one("head_version", "2.1", "Version 2 in the head.", "head.version 2")
    yield bad_one("head_version_high", "2.1", "Version 257 in the head.", "head.version 257")
    for i in (10, 63):
        yield bad_one(f"head_reserved_{i}", "2.1", f"Byte {i} of the head, which is reserved.", f"file.{i} 1")

    # 2.2 The footer
    for i in (0, 3, 7):
        yield bad_one(f"footer_signature_{i}", "2.2", f"Byte {i} of the footer's signature.",
                      f"footer.signature ^{1 << 8 * i}")
    yield bad_one("footer_signature_of_the_head", "2.2", "The head's signature in the footer.",
                  "footer.signature =head.signature")
    yield bad_one("footer_version", "2.2", "Version 2 in the footer.", "footer.version 2")
    yield bad_one("footer_version_high", "2.2", "Version 257 in the footer.", "footer.version 257")
    yield bad_one("head_version_0", "2.1", "Version 0 in the head.", "head.version 0")
    yield bad_one("footer_version_0", "2.2", "Version 0 in the footer.", "footer.version 0")
    yield bad("models_1025", "2.2", "A model more than there may be.", "models_1024", many_models(1025))
    yield bad("roles_0", "2.2", "Entries, but no roles.", "one", Shard(one().samples, []))
    yield bad_one("footer_reserved", "2.2", "The footer's reserved field after the roles.", "footer.reserved 1")
    yield bad_one("footer_reserved_high", "2.2", "The high byte of that field.", "footer.reserved 256")
    for i in (0, 11):
        yield bad_one(f"footer_reserved_end_{i}", "2.2", f"Byte {i} of the footer's last reserved bytes.",
                      f"footer.reserved_end ^{1 << 8 * i}")
    yield bad_mixed("index_later", "2", "The index 64 bytes behind where it begins.", "shift.index 64")
    yield bad_mixed("index_not_aligned", "2", "The index where the last sample ends, not padded.", "shift.index -56")
    yield bad("index_of_none_later", "2", "The index at 4160, where there is no sample.", "empty", Shard(roles=[]),
              "shift.index 64")
    yield bad("index_of_none_in_the_head", "2", "The index at 64, where there is no sample.", "empty",
              Shard(roles=[]), "shift.index -4032")
    yield bad_mixed("footer_later", "2.2", "64 bytes between index and footer.", "shift.footer 64")
    yield bad_mixed("footer_a_byte_later", "2.2", "A byte between index and footer.", "shift.footer 1")
    yield bad_mixed("index_begins_before", "2.2", "The footer says that the index begins 64 bytes before.",
                    "footer.begin -64")
    yield bad_mixed("index_begins_after", "2.2", "The footer says that the index begins 64 bytes after.",
                    "footer.begin +64")
    yield bad_mixed("index_size_more", "2.2", "The footer says that the index has a byte more.", "footer.size +1")
    yield bad_mixed("index_size_less", "2.2", "The footer says that the index has a byte less.", "footer.size -1")
    yield bad_mixed("index_size_more_and_before", "2.2", "The index begins 64 bytes before, and is 64 bytes longer.",
                    "footer.begin -64", "footer.size +64")
    yield bad_mixed("entries_more", "2.2", "An entry more than there is.", "footer.entries +1")
    yield bad_mixed("entries_less", "2.2", "An entry less than there is.", "footer.entries -1")
    yield bad_model("models_more", "2.2", "A model more than there is.", "footer.models +1")
    yield bad_mixed("roles_more", "2.2", "A role more than there is.", "footer.roles +1")
    yield bad_mixed("texts_more", "2.2", "A byte more of texts than there is.", "footer.texts +1")
    yield bad_mixed("groups_more", "2.2", "A group more than there is.", "footer.groups +1")
    yield bad_mixed("groups_less", "2.2", "A group less than there is.", "footer.groups -1")
    yield bad_mixed("groups_as_entries", "2.2", "As many groups as entries.", "footer.groups =footer.entries")
    yield bad("groups_of_none", "2.2", "A group where there is no entry.", "empty", Shard(roles=[]), "footer.groups 1")
    yield bad_mixed("index_check", "2.2", "Another check of the index.", "footer.index_check ^1")
    yield bad_mixed("index_check_high", "2.2", "Another high bit of it.", "footer.index_check ^0x80000000")
    yield bad("index_check_of_none", "2.2", "Another check of an index of no bytes, which is 0.", "empty",
              Shard(roles=[]), "footer.index_check 0xffffffff")
    yield bad_mixed("footer_check", "2.2", "Another check of the footer.", "footer.footer_check ^1")
    yield bad_mixed("footer_check_high", "2.2", "Another high bit of it.", "footer.footer_check ^0x80000000")
    yield bad_mixed("texts_damaged", "2.2", "The last byte of the texts, which the index check covers.", "file.-65 1")

    # What a footer claims
    most = 80 * U32
    yield bad_one("claims_begin_at_the_end_of_numbers", "2.2", "An index that begins at 2^64 - 64.",
                  f"footer.begin {U64 - 63}")
    yield bad_one("claims_begin_last", "2.2", "An index that begins at 2^64 - 1.", f"footer.begin {U64}")
    yield bad_one("claims_begin_2_63", "2.2", "An index that begins at 2^63.", f"footer.begin {1 << 63}")
    yield bad_one("claims_begin_at_the_footer", "2.2", "An index that begins where the footer does.",
                  f"footer.begin {File(one()).size - 64}")
    yield bad_one("claims_begin_at_the_end", "2.2", "An index that begins where the file ends.",
                  f"footer.begin {File(one()).size}")
    yield bad_one("claims_size_most", "2.2", "An index of 2^64 - 1 bytes.", f"footer.size {U64}")
    yield bad_one("claims_size_wraps", "2.2", "A size with which the index ends where it should, modulo 2^64.",
                  f"footer.begin {U64 - 63}", f"footer.size {File(one()).size}")
    yield bad_one("claims_entries_most", "2.2", "2^32 - 1 entries.", f"footer.entries {U32}")
    rest = len(File(one()).index) - 80
    yield bad_one("claims_entries_most_and_their_size", "2.2", "2^32 - 1 entries, and an index of their size.",
                  f"footer.entries {U32}", f"footer.size {most + rest}")
    begin = (File(one()).size - 64 - most - rest) % (1 << 64)
    yield bad_one("claims_entries_most_that_wrap", "2.2",
                  "2^32 - 1 entries, whose index ends where it should, modulo 2^64.",
                  f"footer.entries {U32}", f"footer.size {most + rest}", f"footer.begin {begin}")
    yield bad_one("claims_entries_of_32_bits", "2.2", "2^28 + 1 entries: 80 times as much is 80 in 32 bits.",
                  f"footer.entries {(1 << 28) + 1}")
    yield bad_one("claims_texts_most", "2.2", "2^32 - 1 bytes of texts.", f"footer.texts {U32}")
    yield bad_one("claims_texts_most_and_their_size", "2.2", "2^32 - 1 bytes of texts, and an index of their size.",
                  f"footer.texts {U32}", f"footer.size {U32 + 88}")
    yield bad_one("claims_texts_that_wrap", "2.2", "Texts that come to the index's size in 32 bits, an entry less.",
                  f"footer.texts {rest - 8 + (1 << 32) - 80}", "footer.entries 2")
    yield bad_one("claims_models_most", "2.2", "65535 models.", "footer.models 65535")
    yield bad_one("claims_roles_most", "2.2", "65535 roles.", "footer.roles 65535")
    yield bad_one("claims_groups_most", "2.2", "2^32 - 1 groups.", f"footer.groups {U32}")

    # 3.1 An entry: where it is
    yield bad_mixed("first_later", "3.1", "The first sample at 4160.", "shift.0 64")
    yield bad_mixed("first_sooner", "3.1", "The first sample at 4032.", "shift.0 -64")
    yield bad_mixed("sample_later", "3.1", "64 bytes more between two samples.", "shift.1 64")
    yield bad_mixed("sample_not_aligned", "3.1", "A sample that begins where the one before ends, not padded.",
                    f"shift.3 {File(mixed()).get('entry.2.size') - 64}")
    yield bad_mixed("sample_a_byte_later", "3.1", "A sample a byte behind a multiple of 64.", "shift.5 1")
    yield bad_mixed("sample_at_the_one_before", "3.1", "An entry that begins where the one before does.",
                    "entry.1.begin =entry.0.begin")
    yield bad_mixed("sample_begin_high", "3.1", "An entry that begins 2^63 later.", f"entry.1.begin ^{1 << 63}")
    yield bad_mixed("sample_begin_most", "3.1", "An entry that begins at 2^64 - 64.", f"entry.5.begin {U64 - 63}")
    yield bad_mixed("samples_of_no_bytes_apart", "3.1", "64 bytes between an empty sample and the next.", "shift.5 64")
    yield bad_mixed("sample_size_more", "3.1", "A sample 64 bytes longer than there is room.", "entry.3.size +64")
    yield bad_mixed("sample_size_less", "3.1", "A sample 64 bytes shorter than it takes.", "entry.0.size -64")
    yield bad_mixed("last_size_more", "3.1", "A last sample that reaches into the index.", "entry.5.size +64")
    yield bad_mixed("sample_size_2_36", "3.1", "A sample of 2^36 bytes in a small file.", f"entry.5.size {1 << 36}")
    yield bad_mixed("sample_size_above", "3.1", "A sample of 2^36 + 1 bytes in a small file.",
                    f"entry.5.size {(1 << 36) + 1}")
    yield bad_mixed("sample_size_most", "3.1", "A sample of 2^64 - 1 bytes: its padded end wraps.",
                    f"entry.5.size {U64}")
    yield bad_mixed("sample_size_wraps", "3.1", "A sample that ends before it begins, modulo 2^64.",
                    f"entry.0.size {U64 - 4095}")
    image = ("entry.4.kind 0", "entry.4.width 1", "entry.4.height 1", "entry.4.channels 1", "entry.4.bits 8")
    yield bad_mixed("image_of_no_bytes", "3.1", "An image of 0 bytes.", *image)

    # 3.1 An entry: what it is
    for name, section_reason in (("width", "Width"), ("height", "Height")):
        yield bad_one(f"{name}_0", "3.1", f"{section_reason} 0 of an image.", f"entry.0.{name} 0")
        yield bad_one(f"{name}_above", "3.1", f"{section_reason} 2^20 + 1 of an image.",
                      f"entry.0.{name} {(1 << 20) + 1}")
        yield bad_one(f"{name}_most", "3.1", f"{section_reason} 2^32 - 1 of an image.", f"entry.0.{name} {U32}")
    for name in ("width", "height", "channels", "bits", "colour"):
        yield bad_mixed(f"{name}_of_other_bytes", "3.1", f"Other bytes with {name} 1.", f"entry.2.{name} 1")
    yield bad_mixed("channels_high_of_other_bytes", "3.1", "Other bytes with channels 256.", "entry.2.channels 256")
    yield bad_mixed("height_high_of_other_bytes", "3.1", "Other bytes with height 2^24.", "entry.2.height 0x1000000")
    for channels in (0, 2, 3, 257):
        yield bad_one(f"channels_{channels}_of_gray", "3.1", f"{channels} channels of gray.",
                      f"entry.0.channels {channels}")
    yield bad_mixed("channels_of_rgb", "3.1", "4 channels of RGB.", "entry.0.channels 4")
    yield bad_mixed("channels_of_palette", "3.1", "3 channels of a palette.", "entry.1.channels 3")
    yield bad_one("bits_0", "3.1", "0 bits.", "entry.0.bits 0")
    yield bad_one("bits_17", "3.1", "17 bits.", "entry.0.bits 17")
    yield bad_one("bits_255", "3.1", "255 bits.", "entry.0.bits 255")
    yield bad_mixed("bits_9_of_palette", "3.1", "9 bits of a palette.", "entry.1.bits 9")
    yield bad_one("colour_5", "3.1", "Colour 5.", "entry.0.colour 5")
    yield bad_one("colour_255", "3.1", "Colour 255.", "entry.0.colour 255")
    yield bad_mixed("kind_2", "3.1", "Kind 2, and all else as of other bytes.", "entry.2.kind 2")
    yield bad_one("kind_2_of_an_image", "3.1", "Kind 2, and all else as of an image.", "entry.0.kind 2")
    yield bad_mixed("kind_255", "3.1", "Kind 255.", "entry.2.kind 255")
    yield bad_one("entry_reserved", "3.1", "The reserved byte of an entry.", "entry.0.reserved 1")
    yield bad_one("entry_reserved_end", "3.1", "The reserved bytes at the end of an entry.", "entry.0.reserved_end 1")
    yield bad_mixed("entry_reserved_end_high", "3.1", "The last reserved byte of the last entry.",
                    "entry.5.reserved_end 0x1000000")
    yield bad_mixed("role_beyond", "3.1", "A role that is not there.", "entry.0.role 3")
    yield bad_mixed("role_65535", "3.1", "Role 65535.", "entry.0.role 65535")
    yield bad("role_65535_of_as_many", "3.1", "Role 65535 where 65534 is the last one.", "roles_65535", roles(65535),
              "entry.0.role 65535")
    yield bad_mixed("role_twice", "3.1", "A role that the entry before has.", "entry.1.role 0")
    yield bad_mixed("role_twice_apart", "3.1", "A role that an entry before the one before has.", "entry.2.role 0")
    yield bad("role_twice_of_300", "3.1", "The last role of a group of 300 as the first one.", "group_of_300",
              many(600, 300), "entry.599.role 0")
    yield bad_model("model_beyond", "3.1", "A model that is not there.", "entry.0.model 3")
    yield bad_model("model_65534", "3.1", "Model 65534.", "entry.0.model 65534")
    yield bad_one("model_0_of_none", "3.1", "Model 0 where there is none.", "entry.0.model 0")
    yield bad_model("model_of_other_bytes", "3.1", "Other bytes with a model.", "entry.5.model 1")

    # 1. A name, and 3.1 where it stands
    yield bad_one("name_empty", "1", "A name of no bytes.", "entry.0.name_length 0", "entry.0.name_place 0")
    yield bad("name_of_4097_bytes", "1", "A name of a byte too many.", "name_of_4096_bytes", long_name(4097))
    for name, text in (("zero", b"a\0b"), ("zero_first", b"\0ab"), ("zero_last", b"ab\0")):
        yield bad(f"name_{name}", "1", "A zero byte in a name.", "name_of_1_byte", named(text))
    for name, text in (("slash", b"/"), ("root", b"/a"), ("folder", b"a/"), ("empty_part", b"a//b"),
                       ("dot", b"."), ("two_dots", b".."), ("dot_first", b"./a"), ("two_dots_first", b"../a"),
                       ("dot_inside", b"a/./b"), ("two_dots_inside", b"a/../b"), ("dot_last", b"a/."),
                       ("two_dots_last", b"a/..")):
        yield bad(f"name_{name}", "1", f"The name `{text.decode()}`.", "name_of_1_byte", named(text))
    texts = len(File(mixed()).index) - File(mixed()).at_texts
    yield bad_mixed("name_behind_the_texts", "3.1", "A name that ends a byte behind the texts.",
                    f"entry.0.name_place {texts - 17}")
    yield bad_mixed("name_at_the_end_of_the_texts", "3.1", "A name that begins where the texts end.",
                    f"entry.0.name_place {texts}")
    yield bad_mixed("name_place_most", "3.1", "A name at 2^32 - 1.", f"entry.0.name_place {U32}")
    yield bad_mixed("name_place_wraps", "3.1", "A name whose place and length wrap to 0.",
                    f"entry.0.name_place {U32 - 17}")
    yield bad_mixed("name_in_the_roles", "3.1", "A name that would begin 8 bytes before the texts, modulo 2^32.",
                    f"entry.0.name_place {U32 - 7}")
    yield bad_mixed("name_length_most", "3.1", "A name of 65535 bytes.", "entry.0.name_length 65535")
    yield bad_mixed("name_length_4096_beyond", "3.1", "A name of 4096 bytes, which are not there.",
                    "entry.0.name_length 4096")
    yield bad("name_twice", "3.1", "A name that the entry before has, at another place.", "same_bytes_twice",
              Shard([replace(one().samples[0], name=b"a")] * 2))
    yield bad("name_twice_at_a_place", "3.1", "A name that another entry has, at the same place.", "same_bytes_twice",
              Shard([replace(one().samples[0], name=name) for name in (b"a", b"b")]),
              "entry.1.name_place =entry.0.name_place")
    yield bad_mixed("name_twice_apart", "3.1", "The last entry has the name of the first.",
                    "entry.5.name_place =entry.0.name_place", "entry.5.name_length =entry.0.name_length")
    yield bad("name_twice_of_3000", "3.1", "The last entry of 3000 has the name of the first.", "entries_3000",
              many(3000), "entry.2999.name_place =entry.0.name_place", "entry.2999.name_length 1")

    # 3.1 Metadata, label, group
    yield bad_mixed("metadata_behind_the_texts", "3.1", "Metadata that end a byte behind the texts.",
                    f"entry.0.metadata_place {texts - 19}")
    yield bad_mixed("metadata_longer", "3.1", "Metadata a byte longer than the texts.", "entry.0.metadata_place 0",
                    f"entry.0.metadata_length {texts + 1}")
    yield bad_mixed("metadata_length_most", "3.1", "Metadata of 2^32 - 1 bytes.", f"entry.0.metadata_length {U32}")
    yield bad_mixed("metadata_place_most", "3.1", "Metadata at 2^32 - 1.", f"entry.0.metadata_place {U32}")
    yield bad_mixed("metadata_that_wrap", "3.1", "Metadata whose place and length wrap to 0.",
                    f"entry.0.metadata_place {U32}", "entry.0.metadata_length 1")
    yield bad_mixed("metadata_that_wrap_far", "3.1", "Metadata whose place and length wrap to their end.",
                    f"entry.0.metadata_length {U32}", "entry.0.metadata_place 21")
    yield bad_mixed("metadata_of_no_bytes_at_a_place", "3", "A place of metadata of no bytes.",
                    "entry.1.metadata_place 1")
    yield bad_mixed("metadata_of_no_bytes_far", "3", "A place behind the texts of metadata of no bytes.",
                    f"entry.1.metadata_place {U32}")
    yield bad_mixed("label_differs", "3.1", "Another label than the entry before, of the same group.",
                    "entry.1.label 2")
    yield bad_mixed("label_none", "3.1", "No label, where the entry before, of the same group, has one.",
                    f"entry.4.label {NO_LABEL}")
    yield bad_mixed("label_only", "3.1", "A label, where the entry before, of the same group, has none.",
                    f"entry.0.label {NO_LABEL}", f"entry.1.label {NO_LABEL}")
    yield bad_one("group_first", "3.1", "Group 1 for the first entry.", "entry.0.group 1", "footer.groups 2")
    yield bad_one("group_first_most", "3.1", "Group 2^32 - 1 for the first entry: the number of groups wraps to 0.",
                  f"entry.0.group {U32}", "footer.groups 0")
    yield bad_mixed("group_skipped", "3.1", "A group that no entry is of.", "entry.5.group 3", "footer.groups 4")
    yield bad_mixed("group_again", "3.1", "A group once more, after another one.", "entry.5.group 0",
                    f"entry.5.label {NO_LABEL}", "footer.groups 1")
    yield bad_mixed("group_falls", "3.1", "A group below the one before.", "entry.3.group 0", "entry.3.label 3",
                    "entry.4.group 0", "entry.4.label 3", "entry.5.group 1", "entry.3.role 0", "entry.2.group 1",
                    "footer.groups 2")

    # 3.2 A model, 3.3 a role
    of_models = len(File(modelled()).index) - File(modelled()).at_texts
    yield bad_model("model_of_no_bytes", "3.2", "A model of no bytes.", "model.0.length 0", "model.0.place 0")
    above = bad("model_of_2_17_bytes_and_one", "3.2", "A model of a byte too many.", "", long_model((1 << 17) + 1))
    yield replace(above, control="unverified/model_of_2_17_bytes")
    yield bad_model("model_longer", "3.2", "A model that ends behind the texts.", "model.0.place 0",
                    f"model.0.length {of_models + 1}")
    yield bad_model("model_place_most", "3.2", "A model at 2^32 - 1.", f"model.0.place {U32}")
    yield bad_model("model_length_most", "3.2", "A model of 2^32 - 1 bytes.", f"model.0.length {U32}")
    yield bad_model("model_that_wraps", "3.2", "A model whose place and length wrap to 0.", f"model.0.place {U32}",
                    "model.0.length 1")
    yield bad("model_of_none_behind", "3.2", "A model behind the texts, where there is no sample.", "empty_with_more",
              Shard(models=modelled().models), "model.2.place +64")
    yield bad_one("role_of_no_bytes", "3.3", "A role without a name.", "role.0.length 0", "role.0.place 0")
    yield bad("role_of_256_bytes", "3.3", "A role's name of a byte too many.", "role_of_255_bytes", long_role(256))
    for name, text in (("slash", b"a/b"), ("dot", b"."), ("two_dots", b".."), ("zero", b"a\0b")):
        yield bad(f"role_{name}", "3.3", f"The role's name {text!r}.".replace("b'", "`").replace("'", "`"), "one",
                  Shard(one().samples, [text]))
    yield bad("role_named_twice", "3.3", "The name of an earlier role, which no entry has.", "one",
              Shard(one().samples, [b"image", b"mask", b"image"]))
    yield bad_mixed("role_named_twice_apart", "3.3", "The name of an earlier role, at another place.",
                    "role_name.1.0 x:74657874")
    yield bad_mixed("role_behind_the_texts", "3.3", "A role's name that ends a byte behind the texts.",
                    f"role.2.place {texts - 3}")
    yield bad_mixed("role_place_most", "3.3", "A role's name at 2^32 - 1.", f"role.2.place {U32}")
    yield bad_mixed("role_that_wraps", "3.3", "A role's name whose place and length wrap to 0.",
                    f"role.2.place {U32 - 3}")
    yield bad_mixed("role_length_most", "3.3", "A role's name of 2^32 - 1 bytes.", f"role.2.length {U32}")
    yield bad("role_of_none", "3.3", "A role without a name, where there is no sample.", "empty_with_more",
              Shard(models=modelled().models), "role.0.length 0", "role.0.place 0")


def unverified_shards() -> Iterator[Recipe]:
    """Those that open, but do not verify."""

    def bad(name: str, reason: str, control: str, shard: Shard, *changes: str, section: str = "4") -> Recipe:
        return Recipe(f"unverified/{name}", section, reason, shard, verifying=REFUSE, changes=changes,
                      control=f"valid/{control}")

    def bad_mixed(name: str, reason: str, *changes: str) -> Recipe:
        return bad(name, reason, "mixed", mixed(), *changes)

    def bad_model(name: str, reason: str, *changes: str) -> Recipe:
        return bad(name, reason, "modelled", modelled(), *changes)

    yield bad_mixed("check_of_an_image", "Another check of an image.", "entry.0.check ^1")
    yield bad_mixed("check_of_other_bytes", "Another check of other bytes.", "entry.2.check ^0x80000000")
    yield bad_mixed("check_of_no_bytes", "Another check of a sample of no bytes, which is 0.", "entry.4.check 1")
    yield bad_mixed("check_of_the_last", "Another check of the last sample.", "entry.5.check 0")
    yield bad_mixed("digest_of_other_bytes", "Another digest of other bytes.", "entry.2.digest ^1")
    yield bad_mixed("digest_of_other_bytes_last", "The last byte of it.", f"entry.5.digest ^{1 << 127}")
    yield bad_mixed("digest_of_no_bytes", "A digest of zeros of no bytes.", "entry.4.digest 0")
    yield bad_mixed("digest_of_an_image", "Another digest than the image has.", "entry.0.digest ^1")
    yield bad_mixed("digest_of_an_image_last", "The last byte of it.", f"entry.3.digest ^{1 << 127}")
    yield bad_mixed("byte_of_other_bytes", "A byte of other bytes, whose digest was another.", "sample.5.100 ^1",
                    f"entry.5.digest {File(mixed()).get('entry.5.digest')}")
    yield bad_mixed("width", "Another width than the image has.", "entry.0.width +1")
    yield bad_mixed("height", "Another height than the image has.", "entry.0.height +1")
    yield bad_mixed("channels_and_colour", "RGB with alpha, where the image has none.", "entry.0.channels 4",
                    "entry.0.colour 3")
    yield bad_mixed("colour", "A palette, where the image is gray.", "entry.3.colour 4")
    yield bad_mixed("colour_of_a_palette", "Gray, where the image has a palette.", "entry.1.colour 0")
    yield bad_mixed("bits", "7 bits, where the image has 8.", "entry.3.bits 7")
    yield bad_model("model_none", "No model, where the image names one.", "entry.0.model 65535")
    yield bad_model("model_where_none", "A model, where the image names none.", "entry.1.model 1")
    yield bad_model("model_where_default", "A model, where the image has a default one.", "entry.3.model 1")
    yield bad_model("model_where_inside", "A model, where the image has its own.", "entry.4.model 1")
    yield bad_model("model_other", "Another model than the image names.", "entry.2.model 0")
    yield bad_model("model_kind", "A model of kind 255, which no image names.", "model_bytes.0.0 255")
    yield bad_model("model_cut", "A model of a byte less, which no image names.", "model.0.length -1")
    yield bad_model("model_of_1_byte", "A model of one byte, which no image names.", "model.0.length 1")
    yield bad_model("model_channels", "A model for no channels, which no image names.", "model_bytes.0.1 0")
    yield bad_model("model_channels_5", "A model for five channels, which no image names.", "model_bytes.0.1 5")
    yield bad_model("model_last_bit", "A last bit of a model, which no image names.", "model_bytes.2.-1 ^128")
    yield bad_model("token_model_bits", "A token model for 17 bits, which no image names.", "model_bytes.2.2 17")
    yield bad("bit_model_bits", "A bit model for 17 bits, which no image names.", "modelled_by_bits",
              modelled_by_bits(), "model_bytes.0.2 17")
    yield bad("bit_model_last_bit", "A last bit of a bit model, which no image names.", "modelled_by_bits",
              modelled_by_bits(), "model_bytes.0.-1 ^128")
    yield bad("model_of_2_17_bytes", "As many bytes as a model may have, which are none.", "one", long_model(1 << 17))
    yield bad("model_of_none", "A model that is not one, where there is no sample.", "empty_with_more",
              Shard(models=modelled().models), "model_bytes.1.0 255")
    other_channels = Shard(
        [Sample(b"0.png", vector("invalid/named_model_of_other_channels"), model=0), *modelled().samples[1:2]],
        models=modelled().models)
    yield bad("model_of_other_channels", "A valid model that is not one for the image's channels.", "modelled",
              other_channels)

    size = len(vector("valid/one_pixel"))
    for at in (64, 65, 4095):
        yield bad("zeros_of_the_head" + f"_{at}", f"Byte {at}, behind the head.", "one", one(), f"file.{at} 1",
                  section="2")
    yield bad("zeros_of_an_empty_shard", "Byte 4095, where there is no sample.", "empty", Shard(roles=[]),
              "file.4095 1", section="2")
    ends = {i: File(mixed()).get(f"entry.{i}.begin") + File(mixed()).get(f"entry.{i}.size") for i in range(6)}
    yield bad("zeros_after_an_image", "The byte after an image.", "mixed", mixed(), f"file.{ends[0]} 1", section="2")
    yield bad("zeros_before_a_sample", "The byte before a sample.", "mixed", mixed(),
              f"file.{File(mixed()).get('entry.3.begin') - 1} 1", section="2")
    yield bad("zeros_after_the_last", "The byte after the last sample.", "mixed", mixed(), f"file.{ends[5]} 1",
              section="2")
    yield bad("zeros_before_the_index", "The byte before the index.", "mixed", mixed(),
              f"file.{File(mixed()).begin - 1} 1", section="2")

    for name, reason in (
        ("header_digest", "An image whose digest is another, which only verifying looks at."),
        ("section_check_aside", "An image with damage aside, which only verifying looks at."),
        ("index_check", "An image whose index check is another."),
        ("header_frames_2", "An image of two frames."),
        ("header_head_check", "An image whose head check is another."),
        ("header_required_feature_4", "An image that requires a feature that is not known."),
    ):
        yield bad(f"image_{name}", reason, "one", with_image(f"invalid/{name}"))
    pixel = vector("valid/one_pixel")
    for name, reason, data in (("longer", "An image and a byte more.", pixel + b"\0"),
                               ("shorter", "An image without its last byte.", pixel[:-1]),
                               ("of_a_header", "The header of an image alone.", pixel[:64]),
                               ("with_another_signature", "An image with the signature of a shard.",
                                pixel[:3] + b"S" + pixel[4:])):
        yield bad(f"image_{name}", reason, "one", Shard([Sample(b"one.png", data)]))
    shape = ("entry.0.kind 0", "entry.0.width 1", "entry.0.height 1", "entry.0.channels 1", "entry.0.bits 8")
    yield bad("image_of_one_byte", "An image of one byte.", "one", Shard([Sample(b"one.png", b"\x8b", OTHER_BYTES)]),
              *shape)
    yield bad("image_of_other_bytes", "Other bytes that say that they are an image.", "one",
              Shard([Sample(b"one.png", bytes(size), OTHER_BYTES)]), *shape)
    yield bad("image_of_an_image_and_more", "An image before another one, both as one sample.", "one",
              Shard([Sample(b"one.png", pixel.ljust(128, b"\0") + pixel)]))
