#!/usr/bin/env python3
"""Breaks libl3 and the kernels on purpose, one fault at a time, and expects the tests to notice.

    mutation_check.py WORK            all faults, in a copy of the tree under WORK
    mutation_check.py WORK 3 7        only these faults
    mutation_check.py --list          list the faults

For each fault, it builds the library and the tests again and runs tests until one fails. If no test fails, it names the
fault, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "CHANGELOG.md", "base", "bench", "bridge",
         "cmake", "codec", "formats", "kernels", "loader", "spec", "tests", "tools")
PROGRAMS = ("vector_verdicts", "codec_test", "dense_test", "hostile_test", "allocation_test", "engine_test",
            "oracle_samples", "gpu_emulated_test", "gpu_model_parts_test", "loader_order_test", "loader_test",
            "loader_gpu_test", "resample_test")


@dataclass(frozen=True)
class Fault:
    what: str
    file: str
    old: str
    new: str


FAULTS = (
    Fault("a width of 2^20 + 1 passes", "codec/src/container/container_rules.h",
          "head.width > kMaxEdge)", "head.width > kMaxEdge + 1)"),
    Fault("the first byte after a section may be anything", "codec/src/container/container_rules.h",
          "for (uint64_t i = section.size; i < padded", "for (uint64_t i = section.size + 1; i < padded"),
    Fault("the last byte after the index may be anything", "codec/src/container/container_rules.h",
          "kIndexEntryBytes; i < head.index_end; ++i)", "kIndexEntryBytes; i + 1 < head.index_end; ++i)"),
    Fault("offsets of payloads wrap at 32 bits", "codec/src/container/container_rules.h",
          "load_u32(entry + 4) != next)", "load_u32(entry + 4) != static_cast<uint32_t>(next))"),
    Fault("a fast tile may have no payload", "codec/src/container/methods.h",
          "entry.payload_bytes >= kMinTinyFast", "true"),
    Fault("the check of a tiny file does not count", "codec/src/container/container_rules.h",
          "bytes / 4 - 2) != load_u32(data + tiny_header::kCheck)", "bytes / 4 - 2) == 0"),
    Fault("the sections of a tiny file may fall", "codec/src/container/container_rules.h",
          "if (code <= before)", "if (code == before)"),
    Fault("the last section of a tiny file may end a byte behind the file", "codec/src/container/container_rules.h",
          "size > bytes - next - 2)", "size > bytes - next - 1)"),
    Fault("bytes behind the model of a tiny file may be anything", "codec/src/container/container_rules.h",
          "for (uint32_t i = kTinyHeaderBytes + model; i < *at", "for (uint32_t i = *at; i < *at"),
    Fault("a transparency may be longer than its palette", "codec/src/container/container_rules.h",
          "if (section.size > palette_of(data, *head.find(L3_SECTION_PALETTE)).entries) {",
          "if (section.size > 256) {"),
    Fault("a palette may give an entry more than it has", "codec/src/container/container_rules.h",
          "palette.given_entries > palette.entries ||", "palette.given_entries > palette.entries + 1 ||"),
    Fault("a palette may have 256 entries, whatever the bits", "codec/src/container/container_rules.h",
          "palette.entries > 1u << head.bits", "palette.entries > 256"),
    Fault("a palette without entries that are given begins white", "codec/src/container/palette.h",
          "given_colour(given_entries - 1) : 0;", "given_colour(given_entries - 1) : 0xFFFFFF;"),
    Fault("red and blue of class colours change places, in encoder and decoder", "codec/src/container/palette.h",
          "<< (8 * c + 7 - j)", "<< (8 * (2 - c) + 7 - j)"),
    Fault("a reserved part of a colour space passes", "codec/src/container/container_rules.h",
          "parts >> kParts != 0", "parts >> kParts > 1"),
    Fault("offsets of sections wrap at 32 bits", "codec/src/container/container_rules.h",
          "uint64_t{load_u32(data + at + section_entry::kOffset)} * kUnit",
          "load_u32(data + at + section_entry::kOffset) * kUnit"),
    Fault("types of sections may repeat", "codec/src/container/container_rules.h",
          "section.type <= head.sections[i - 1].type", "section.type < head.sections[i - 1].type"),
    Fault("images of exactly the pixel limit are refused", "codec/src/decode/container.cpp",
          "pixels > limits.max_pixels", "pixels >= limits.max_pixels"),
    Fault("another check, for encoder and decoder alike", "codec/src/container/check.h",
          "state ^ (state >> 13)", "state ^ (state >> 14)"),
    Fault("the check leaves out the words after the last 32", "codec/src/container/check.h",
          "if (i < words) {", "if (false) {"),
    Fault("NE of the last column is not N", "codec/src/engine/fast.h",
          "if (edge != kLanes - 1) ne =", "if (edge > kLanes) ne ="),
    Fault("predictor 5 takes N for NE, in encoder and decoder", "codec/src/engine/fast.h",
          "W::average(above.ne, above.nw)) - above.nw", "W::average(above.n, above.nw)) - above.nw"),
    Fault("half() rounds up where samples have 1 bit", "codec/src/engine/fast.h",
          "smaller(17 - bits, 15)", "smaller(17 - bits, 14)"),
    Fault("red is not reduced before blue is made of it", "codec/src/engine/fast.h",
          "      c[0] = (c[0] + c[1]) & mask;\n      c[2] = (c[2] + W::average(c[0], c[1])) & mask;",
          "      c[0] = c[0] + c[1];\n"
          "      c[2] = (c[2] + W::average(c[0], c[1])) & mask;\n"
          "      c[0] = c[0] & mask;"),
    Fault("origins may be anything", "codec/src/engine/tile_decode.h",
          "if (origin >> shape_.bits != 0)", "if (origin >> 16 != 0)"),
    Fault("sixteen bytes may be left over", "codec/src/engine/tile_decode.h",
          "if (rest >= kUnit)", "if (rest > kUnit)"),
    Fault("a reserved bit of a block's header is not looked at", "codec/src/engine/tile_decode.h",
          "fields >> 11 != 0", "fields >> 11 > 1"),
    Fault("a block may end after its payload", "codec/src/engine/tile_decode.h",
          "if (room < block_bytes) return {Reason::block_truncated, at_};", ""),
    Fault("bits after the last raw sample are not looked at in its byte", "codec/src/engine/tile_decode.h",
          "const uint32_t used = i == end / 8 ? end % 8 : 0;", "const uint32_t used = i == end / 8 ? 8 : 0;"),
    Fault("the corner of the second strip is that of the first", "codec/src/engine/tile_decode.h",
          "corner = W::last(n);", "if (strip == 0) corner = W::last(n);"),
    Fault("a width may be one above the bits", "codec/src/container/block_reader.h",
          "(127 - bits) * kEach", "(126 - bits) * kEach"),
    Fault("a region loses the last column of a tile", "codec/src/decode/region.cpp",
          "region_.x + region_.width - x)", "region_.x + region_.width - x - (region_.x > 0 ? 1 : 0))"),
    Fault("payloads are decoded without their check", "codec/src/decode/region.cpp",
          "entry.has_check && file.target", "!entry.has_check && file.target"),
    Fault("the last byte of the digest does not count", "codec/src/decode/verify.cpp",
          "file.data + header::kDigest, sizeof(digest))", "file.data + header::kDigest, sizeof(digest) - 1)"),
    Fault("which bad tile is named depends on time", "codec/src/decode/region.cpp",
          "while (i < lowest && !failed_", "while (lowest == L3_NO_TILE && !failed_"),
    Fault("blocks of metadata may be above the window", "codec/src/container/metadata.cpp",
          "block >> 3 > most_block", "block >> 3 > kMaxBlock"),
    Fault("metadata may need any window", "codec/src/container/metadata.cpp",
          "if (window > kMaxWindow) return false;", ""),
    Fault("samples above 2^bits - 1 are encoded", "codec/src/engine/tile_encode.h",
          "if (shape_.bits == 8 * sizeof(Sample)) return true;", "return true;"),
    Fault("a class table may have a symbol more than there are classes", "codec/src/models/model_parts.h",
          "last == 0 || last >= symbols ||", "last == 0 || last > symbols ||"),
    Fault("33 classes pass", "codec/src/models/model_reader.h",
          "bytes_[4 + c] > kMaxClasses", "bytes_[4 + c] > kMaxClasses + 1"),
    Fault("frequencies may add up to 4096 without R", "codec/src/models/model_parts.h",
          "sum >= kProbabilities)", "sum > kProbabilities)"),
    Fault("the rest of a part's last byte is not looked at", "codec/src/models/model_parts.h",
          " && (bits_ & ((uint64_t{1} << ready_) - 1)) == 0;", ";"),
    Fault("eight bytes of a part count as eight also where fewer bits fit", "codec/src/models/model_parts.h",
          "loaded = (63 - ready_) / 8;", "loaded = 8 - (ready_ > 0);"),
    Fault("tables after a row's last one are not set", "codec/src/models/model_parts.h",
          "for (uint32_t i = last + 1; i < count; ++i)", "for (uint32_t i = last + 2; i < count; ++i)"),
    Fault("metadata that was not compressed may be shorter than it says", "codec/src/container/metadata.cpp",
          "return done == unpacked;", "return true;"),
    Fault("metadata that was not compressed needs no checksum", "codec/src/container/metadata.cpp",
          "if ((frame[4] & 4) != 0) return false;", ""),
    Fault("activity weights may add up to 1 more", "codec/src/models/model_parts.h",
          "return sum <= Form::kMaxActivity;", "return sum <= Form::kMaxActivity + 1;"),
    Fault("activity weights of dense models may add up to 1000", "codec/src/models/model_reader.h",
          "kMaxActivity = 128;", "kMaxActivity = 1000;"),
    Fault("weights of pairs may add up to 129", "codec/src/models/model_parts.h",
          "sum > Form::kMaxPair)", "sum > Form::kMaxPair + 1)"),
    Fault("weights of pairs may add up to anything below 0", "codec/src/models/model_parts.h",
          "if (sum < -Form::kMaxPair || sum", "if (sum"),
    Fault("weights of pairs in a token model are bounded, too", "codec/src/models/token_model_reader.h",
          "kMaxPair = 256;", "kMaxPair = 128;"),
    Fault("errors of earlier channels are in no pairs", "codec/src/container/dense.h",
          "kErrorTaps = 8;", "kErrorTaps = 6;"),
    Fault("the encoder's sums have 24 bits", "codec/src/engine/dense_fit_kernels.h",
          "kSumShift = 16;", "kSumShift = 8;"),
    Fault("the encoder's weights add up to anything in pairs", "codec/src/encode/dense_fit.cpp",
          "channel_, DenseForm::kMaxPair, share_", "channel_, 256, share_"),
    Fault("the encoder's activity weights add up to anything", "codec/src/encode/class_fit.h",
          "while (sum > Model::Form::kMaxActivity);", "while (false);"),
    Fault("the GPU's sums have 32 bits", "kernels/src/cuda_word_warp.cuh",
          "clamp_half_to_top(sum.v,", "clamp_to_top(sum.v,"),
    Fault("the GPU's biased errors add to sums", "kernels/src/dense_decoder.cuh",
          "    sum = W::without_bias(weights_.word(c, kErrorWord + 1), sum);\n", ""),
    Fault("the GPU mends no edges in row 1", "kernels/src/window_front.cuh",
          "W::either(W::less(at.row, 2u),", "W::either(W::less(at.row, 1u),"),
    Fault("the GPU mends no edges in the last column", "kernels/src/window_front.cuh",
          "W::at_least(at.column - W::splat(1), width - 2)",
          "W::at_least(at.column - W::splat(1), width - 1)"),
    Fault("the GPU's first lane has nothing above", "kernels/src/cuda_word_warp.cuh",
          "if (lane_number() == 0) words = *at_;", ""),
    Fault("a GPU's row of tables begins where rows have no padding", "kernels/src/decode_dense.cu",
          "to.table_of[c][row * kRowBytes]", "to.table_of[c][row * kLevels]"),
    Fault("a GPU's narrow stores repeat a word", "kernels/src/decode_dense.cu",
          "store_global(to + 4 * i, words[i]);", "store_global(to + 4 * i, words[i & ~1u]);"),
    Fault("a GPU's wide stores repeat a word", "kernels/src/decode_dense.cu",
          "make_uint2(words[i], words[i + 1])", "make_uint2(words[i], words[i])"),
    Fault("a GPU stores wide words where they are not aligned", "kernels/src/decode_dense.cu",
          "% (kChannels % 2 == 0 ? 16 : 8) != 0", "% 4 != 0"),
    Fault("W's weight is that which makes 63", "codec/src/models/model_parts.h",
          "put_weight(tables, c, k, 0, 64 - sum_of_weights", "put_weight(tables, c, k, 0, 63 - sum_of_weights"),
    Fault("class tables of the first channel are used", "codec/src/models/model_parts.h",
          "tables.class_table_of[c][k] + first);", "tables.class_table_of[c][k]);"),
    Fault("bits of sign patterns are in another order", "codec/src/models/dense_tables.h",
          "(pattern >> 4 | pattern << 2) & 63", "(pattern >> 4 | pattern << 3) & 63"),
    Fault("a tile that is a pixel too narrow for its lanes has another period", "codec/src/container/dense.h",
          "return width > 2 * lanes ? width", "return width >= 2 * lanes - 1 ? width"),
    Fault("NE of the last column is what a lane above saw", "kernels/src/window_front.cuh",
          "W::select(edges.last_column_or_first_row, window.n, window.ne)",
          "W::select(edges.first_row, window.n, window.ne)"),
    Fault("NN of row 1 is that of a row above the tile", "kernels/src/window_front.cuh",
          "nn = W::select(edges.first_rows, window.n, window.nn)",
          "nn = W::select(edges.first_row, window.n, window.nn)"),
    Fault("a part of the lanes begins a step late", "codec/src/engine/wavefront.h",
          "2 * part * W::kPartLanes - kAhead", "2 * part * W::kPartLanes - kAhead + 1"),
    Fault("a part of the lanes ends a step early", "codec/src/engine/wavefront.h",
          "2 * last + turns * period + width_", "2 * last + turns * period + width_ - 1"),
    Fault("NWW of column 1 is another one", "kernels/src/window_front.cuh",
          "    window.nww = window.nw;\n", "    window.nww = window.nn;\n"),
    Fault("errors end at -127", "codec/src/container/dense.h", "kMinError = -128", "kMinError = -127"),
    Fault("levels are one further up, in the decoder", "codec/src/targets/dense_warp_avx2.h",
          "constant<(130 << 2) * 0x10001>", "constant<((130 << 2) - 1) * 0x10001>"),
    Fault("W of column 0 is not N", "codec/src/engine/record_loop.h",
          "      at(kRoleW) = at(kRoleWw) = at(kRoleNw)", "      at(kRoleWw) = at(kRoleNw)"),
    Fault("processors: NE of the last column is what a lane above saw", "codec/src/engine/record_loop.h",
          "if (last_column || row_0) at(kRoleNe) = n;", "if (row_0) at(kRoleNe) = n;"),
    Fault("processors: NNE of row 1 is that of a row above the tile", "codec/src/engine/record_loop.h",
          "at(kRoleNne) = at(kRoleNe);\n    } else {", "} else {"),
    Fault("dense: neighbours of the last column stay corrected", "codec/src/engine/dense_loop.h",
          "      this->restore_edges();\n", ""),
    Fault("the second lane's NN is its own lane's", "codec/src/engine/record_loop.h",
          "to[array][0] = lanes > 1 ? records[lanes - 2] : from[array][1];",
          "to[array][0] = records[lanes - 1];"),
    Fault("lanes are taken for active a step too long", "codec/src/engine/record_loop.h",
          "step_ > steady_begin_ && step_ < steady_end_;", "step_ > steady_begin_ && step_ <= steady_end_;"),
    Fault("NN of row 1 at the edge of a column is that of a row above the tile", "codec/src/engine/record_loop.h",
          "if (row_0_or_1) at(kRoleNn) = n;", "if (row_0) at(kRoleNn) = n;"),
    Fault("dense: errors in records are 127 too high", "codec/src/engine/dense_loop.h",
          "begin -= 128 * of_error;", "begin -= 127 * of_error;"),
    Fault("AVX2 takes the sign of W's error for that of N's", "codec/src/targets/dense_warp_avx2.h",
          "constant<0x04010401>", "constant<0x08010801>"),
    Fault("words may be taken from behind the payload", "codec/src/engine/wavefront.h",
          "return at_ <= payload_bytes_;", "return at_ <= payload_bytes_ + 2;"),
    Fault("states at the end may be anything", "codec/src/engine/wavefront.h",
          "if (W::bits(rests) != W::kAllBits) return {Reason::dense_states, 0};", ""),
    Fault("states at the end of a tile with an ending are 65536", "codec/src/engine/wavefront.h",
          "ending_.row < height_ ?", "ending_.row > height_ ?"),
    Fault("the ending begins a column late", "codec/src/container/dense.h",
          "columns < width ? width - columns", "columns < width ? width - columns + 1"),
    Fault("a lane's last rows are one less", "codec/src/container/dense.h",
          "rows < height ? height - rows", "rows < height ? height - rows + 1"),
    Fault("a lane has any number of pixels", "codec/src/container/methods.h",
          "shape.width * shape.height > kMaxPixelsOfLane * lanes", "false"),
    Fault("the last byte after the words may be anything", "codec/src/engine/wavefront.h",
          "for (uint32_t i = at_; i < payload_bytes_; ++i)", "for (uint32_t i = at_; i + 1 < payload_bytes_; ++i)"),
    Fault("sixteen bytes may be left over after the words", "codec/src/engine/wavefront.h",
          "if (payload_bytes_ - at_ >= kUnit)", "if (payload_bytes_ - at_ > kUnit)"),
    Fault("even symbols go down", "codec/src/models/dense_tables.h",
          "(0u - (symbol & 1))) & 0xFF", "(0u - (~symbol & 1))) & 0xFF"),
    Fault("a prediction leans upwards from a half and a 64th, with SSE", "codec/src/targets/dense_warp_sse.h",
          "_mm_slli_epi16(within, 16", "_mm_slli_epi16(_mm_sub_epi16(within, _mm_set1_epi16(1)), 16"),
    Fault("zones begin a step later", "codec/src/models/dense_tables.h",
          "3613 * distance + 61923", "3613 * distance + 58310"),
    Fault("64 lanes pass", "codec/src/container/methods.h", "kMaxLogLanes", "kMaxLogLanes + 1"),
    Fault("a dense tile needs no model", "codec/src/container/container_rules.h",
          "Row::kNeedsModel && head.model_origin() == L3_MODEL_NONE", "false"),
    Fault("a column is lost where a region begins within what is written at once", "codec/src/engine/skewed_rows.h",
          "step += out_.x0 - first;", "step += out_.x0 - first - (out_.x0 - first == 63 ? 1 : 0);"),
    Fault("token tiles of three channels are decoded as if they had two", "codec/src/engine/token_loop.h",
          "if (channels() > 2) decode_numbers<2>();", "if (channels() > 3) decode_numbers<2>();"),
    Fault("room for samples is made above the limits", "codec/include/l3/l3.hpp",
          "if (decode(&none, 0, &error) != L3_ERROR_BUFFER) return error;", ""),
    Fault("tiles after the first 32 begin where they want", "kernels/src/open_images.cu",
          "next += __shfl_sync(kAllLanes, sum, kLanes - 1);", "next += __shfl_sync(kAllLanes, sum, kLanes - 2);"),
    Fault("a batch may have any number of models", "kernels/src/build_models.cu",
          "if (slot >= batch.slot_count) {", "if (false) {"),
    Fault("a GPU's weights may be 128", "kernels/src/read_parts.cuh",
          "weight[tap] <= 127", "weight[tap] <= 128"),
    Fault("a GPU reads a change of tables that is only in part in its window", "kernels/src/read_parts.cuh",
          "kMostKept = 29 - Form::kTableBits", "kMostKept = 31 - Form::kTableBits"),
    Fault("a GPU does not look at the rest of a part's last byte", "kernels/src/read_parts.cuh",
          "ceil_div(at, 8) == size_ && field(at, 8 * size_ - at) == 0", "ceil_div(at, 8) == size_"),
    Fault("means of expected frequencies are rounded down", "kernels/src/read_parts.cuh",
          "before_that * use_before_that + is_mean)", "before_that * use_before_that)"),
    Fault("a GPU's full bucket has another symbol", "kernels/src/cuda_word_warp.cuh",
          "count == 16 ? own : other", "other"),
    Fault("a GPU's number of another symbol is that of the first bucket", "kernels/src/cuda_word_warp.cuh",
          "((bucket.other + from) & kNumber)", "(bucket.other & kNumber)"),
    Fault("a large symbol that needs nothing more is filled up", "kernels/src/build_buckets.cuh",
          "scratch.excess[q] + 1u)", "scratch.excess[q])"),
    Fault("the first small symbol is filled by one that has something to give", "kernels/src/build_buckets.cuh",
          "before == 0 ? scratch.next_large[0] :", ""),
    Fault("a model's tiles begin behind its own", "kernels/src/list_tiles.cu",
          "if (s < slot) atomicAdd(&scratch.tiles_before", "if (s <= slot) atomicAdd(&scratch.tiles_before"),
    Fault("tiles of images that are refused are taken", "kernels/src/decode_chunks.cuh",
          "smaller(chunk.last, chunk.slot_first + batch.slot_counts[chunk.slot].listed)", "chunk.last"),
    Fault("the first model's tables stay", "kernels/src/decode_chunks.cuh",
          "scratch.loaded_slot != chunk.slot", "scratch.loaded_slot == kNone"),
    Fault("tiles of a chunk have the room of the smallest", "kernels/src/decode_chunks.cuh",
          "atomicMax(&scratch.max_bytes, Tiles::scratch_of", "atomicMin(&scratch.max_bytes, 16 + Tiles::scratch_of"),
    Fault("dense payloads are decoded without their check", "kernels/src/decode_chunks.cuh",
          "!= tile.entry.check", "== tile.entry.check + 1"),
    Fault("a block goes on before its last tile is done", "kernels/src/decode_chunks.cuh",
          "decode_tile_of_chunk<Tiles>(batch, shared, warp, i);\n      }\n    }\n    __syncthreads();",
          "decode_tile_of_chunk<Tiles>(batch, shared, warp, i);\n      }\n    }"),
    Fault("NE of a partial strip's last column is what is right of it", "kernels/src/decode_fast.cuh",
          "? (width_ - 1) % kLanes : kLanes - 1", "? kLanes - 1 : kLanes - 1"),
    Fault("the corner of a strip is that of this one", "kernels/src/decode_fast.cuh",
          "uint32_t w_before = corner_;", "uint32_t w_before = __shfl_sync(kAllLanes, n, left_lane_) >> 24;"),
    Fault("widths may be one above the bits", "kernels/src/decode_fast.cuh",
          "(127 - scratch_.bits)", "(126 - scratch_.bits)"),
    Fault("base widths above the bits are faults of the widths", "kernels/src/decode_fast.cuh",
          " && base <= scratch_.bits", ""),
    Fault("the last block may end behind the payload", "kernels/src/decode_fast.cuh",
          " || at_ > payload_bytes_", ""),
    Fault("a strip gets W of its turn where the predictor has none", "kernels/src/decode_fast.cuh",
          "left_in_turn && plus_w != 0", "left_in_turn"),
    Fault("a strip gets no W from the second one to its left", "kernels/src/decode_fast.cuh", "i < kChain", "i < 1"),
    Fault("NW of a block beside one of its turn is of the turn before", "kernels/src/decode_fast.cuh",
          "left_in_turn ? left_lane_ : kLanes - 1", "kLanes - 1"),
    Fault("blocks of a strip that is not done are written over", "kernels/src/decode_fast.cuh",
          "kChannels == 3 ? 6 : 4", "4"),
    Fault("blocks of a partial strip count as whole", "kernels/src/decode_fast.cuh",
          "shape.width / kLanes * kChannels", "ceil_div(shape.width, kLanes) * kChannels"),
    Fault("groups that are not there have the base width", "kernels/src/decode_fast.cuh",
          "groups > 4 ? 8 * groups - 32 : 0", "32"),
    Fault("strips leave as words where a part of them is wanted", "kernels/src/output.cuh",
          "x + columns <= words_.to", "x < words_.to"),
    Fault("four pixels are written where three are wanted", "kernels/src/output.cuh",
          "      range.from = (place.x0 + 3) & ~3u;\n"
          "      range.to = place.x1 & ~3u;\n"
          "    }\n"
          "    return range;\n"
          "  }\n"
          "  L3_INLINE static GroupRange of_channels",
          "      range.from = (place.x0 + 3) & ~3u;\n"
          "      range.to = (place.x1 + 1) & ~3u;\n"
          "    }\n"
          "    return range;\n"
          "  }\n"
          "  L3_INLINE static GroupRange of_channels"),
    Fault("chunks of token tiles lie where those of the others do", "kernels/src/list_tiles.cu",
          "for (uint32_t k = 0; k < kind; ++k) first", "for (uint32_t k = 0; k + 1 < kind; ++k) first"),
    Fault("distances of values have no limit", "kernels/src/cuda_token_warp.cuh",
          "min(__sad(static_cast<int>(a.v), static_cast<int>(b.v), 0), static_cast<uint32_t>(kMaxTokenError))",
          "__sad(static_cast<int>(a.v), static_cast<int>(b.v), 0)"),
    Fault("samples of 16 bits in groups change places", "kernels/src/token_pixels.cuh",
          "__byte_perm(c, last, 0x5410)", "__byte_perm(last, c, 0x5410)"),
    Fault("a list of samples goes on from the first one of a block", "kernels/src/read_values.cuh",
          "__shfl_sync(kAllLanes, here, kLanes - 1)", "__shfl_sync(kAllLanes, here, 0)"),
    Fault("listed samples may be above the image's", "kernels/src/read_values.cuh",
          "if (__any_sync(kAllLanes, here > maximum)) return false;", ""),
    Fault("the tables of matches never depend on activity", "kernels/src/token_tiles.cuh",
          "by_activity ? first : from_.match_table[first]", "from_.match_table[first]"),
    Fault("the first lane has no row to its left", "kernels/src/token_blocks.cuh",
          "lane == 0 ? left_before : from_left", "from_left"),
    Fault("rows of the next round are not still", "kernels/src/token_blocks.cuh",
          "block + 1 >= round.end ? right_after : from_right", "block + 1 >= round.end ? 0 : from_right"),
    Fault("lanes take what the lane above kept one step ago", "kernels/src/token_follow.cuh",
          "__shfl_up_sync(kAllLanes, kept_before_, 1)", "__shfl_up_sync(kAllLanes, kept_, 1)"),
    Fault("a pixel may follow one of its own step", "kernels/src/token_follow.cuh",
          "if (its_step >= step) return;", "if (its_step > step) return;"),
    Fault("rows begin with what the row before kept last", "kernels/src/token_follow.cuh",
          "FollowKept::of(of_n, x > 0 ? kept_ : 0)", "FollowKept::of(of_n, kept_)"),
    Fault("a table is as the tile before left it", "kernels/src/token_follow.cuh",
          "i < (kNearEntries + kWideEntries) / 4; i += kLanes", "i < 1; i += kLanes"),
    Fault("the last column has a pixel above to its right", "kernels/src/token_follow.cuh",
          "has_ne_ = active && x + 1 < width_;", "has_ne_ = active;"),
    Fault("tiles share the room of the first one", "kernels/src/token_tiles.cuh",
          "uint64_t{tile.place} * tile.state->follow_room", "uint64_t{0} * tile.state->follow_room"),
    Fault("an image may have more room than there is", "kernels/src/build_models.cu",
          "scratch.follow + follow > batch.follow_capacity", "scratch.follow > batch.follow_capacity"),
    Fault("the block above counts though its round is this one", "codec/src/engine/wavefront.h",
          "W::both(W::less(lane, across), W::at_least(lane + first, across))", "W::at_least(lane + first, across)"),
    Fault("still blocks have classes", "codec/src/engine/wavefront.h",
          "active_[part] = W::and_not(active_[part], still);", ""),
    Fault("a pixel that stays is W", "codec/src/engine/token_records.h",
          "W::select(level, near(now, kRoleW, c), near(now, kRoleN, c))", "near(now, kRoleW, c)"),
    Fault("lanes forget that they are in still blocks", "codec/src/engine/token_loop.h",
          "this->enter_blocks(step_);\n    enter();\n    if (was_steady",
          "this->enter_blocks(step_);\n    if (was_steady"),
    Fault("lanes stay a step too long", "codec/src/engine/still_rows.h",
          "smaller(steps, end - x)", "smaller(steps, end - x + 1)"),
    Fault("errors from before quiet steps are seen after them", "codec/src/engine/token_records.h",
          "if constexpr (!kLiteral) delayed.put_nothing(1);", ""),
    Fault("quiet steps leave too few records", "codec/src/engine/token_loop.h",
          "left = Base::kBack;", "left = Base::kBack - 2;"),
    Fault("lanes do not hold what quiet steps pass", "codec/src/engine/token_records.h",
          "if constexpr (kHasHoles) track_last_value(part, n[part], w[part]);", ""),
    Fault("errors stay what they are in pixels that are no numbers", "codec/src/engine/token_loop.h",
          "error_here_[c][part] = W::both(escaped, W::token_errors(decoded, p));",
          "error_here_[c][part] = W::token_errors(decoded, p);"),
    Fault("octaves of activity are twice as wide", "codec/src/engine/token_loop.h",
          "W::levels(sums_[part]) >> 2", "W::levels(sums_[part]) >> 3"),
    Fault("still blocks may have a frequency of 0", "codec/src/models/token_model_reader.h",
          "if (tables_.still && frequency == 0) return false;", ""),
    Fault("still rows may have a frequency of 0", "codec/src/models/token_model_reader.h",
          "if (tables_.rows && frequency == 0) return false;", ""),
    Fault("rows that are not decoded yet count as such that are not still", "codec/src/engine/wavefront.h",
          "rows[i] = 0xFFFF;", "rows[i] = 0;"),
    Fault("rows below the tile are decoded, too", "codec/src/engine/wavefront.h",
          "W::both(active_[part], W::less(W::load(first_rows + part * W::kPartLanes) + k, height_))", "active_[part]"),
    Fault("of the rows above, the nearer one is taken for the other one", "codec/src/models/token.h",
          "(own >> 1 & 1) | (own & 1) << 1", "(own & 1) | (own >> 1 & 1) << 1"),
    Fault("an entry of places takes that of the last lane", "codec/src/engine/token_follow.h",
          "entry = entry > word ? entry : word;", "entry = word;"),
    Fault("a row's trail goes on from the row before", "codec/src/engine/token_follow.h",
          "trails[l] = sums[l] & before_last[l];", "trails[l] = sums[l];"),
    Fault("words of the wide table have no tag", "codec/src/engine/follow.h",
          "word == 0 || (word & ((1u << kTagBits) - 1)) != wide_tag(key)", "word == 0"),
    Fault("flat pixels ask the wide table, too", "codec/src/engine/token_follow.h",
          "wide_asked_ = lanes & ~flat;", "wide_asked_ = lanes;"),
    Fault("what is decoded in this step is followed", "codec/src/engine/token_follow.h",
          "static_cast<int32_t>(its_step) < now", "static_cast<int32_t>(its_step) <= now"),
    Fault("what the last lane follows is not kept", "codec/src/engine/token_follow.h",
          "last_kept_[last] = kept[lane_count_ - 1];", ""),
    Fault("pixels that equal in the last channel keep their place", "codec/src/engine/token_records.h",
          "equal[part] = W::both(equal[part], W::same(here_[c][part], followed));",
          "equal[part] = W::same(here_[c][part], followed);"),
    Fault("errors that are not 0 stay in steps that have none", "codec/src/engine/token_records.h",
          "if ((this->noisy_ & bit) == 0) return;", "return;"),
    Fault("errors of the row above the first lane are forgotten", "codec/src/engine/token_records.h",
          "!any_escaped_ && delayed == 0", "!any_escaped_"),
    Fault("few lanes take words in the ending", "codec/src/engine/token_lanes.h",
          "lane.coder.floor = ends ? 0 : kStateFloor;", "lane.coder.floor = kStateFloor;"),
    Fault("few lanes have nothing to the right of the row above", "codec/src/engine/token_lanes.h",
          "end[0] = end[-1];", ""),
    Fault("rows of few lanes move, and their lanes do not", "codec/src/engine/token_lanes.h",
          "for (Lane& lane : lanes) lane.pixel += shift;", ""),
    Fault("what escapes never equals a neighbour", "codec/src/engine/lane_coder.h",
          "if ((value == w) | (value == n) | (value == ne)) {", "if (value == 1u << 20) {"),
    Fault("flat pixels do not care for errors two rows above", "codec/src/engine/token_lanes.h",
          "goes_on = goes_on && (above[kError + 1] | two[kError]) == 0;",
          "goes_on = goes_on && above[kError + 1] == 0;"),
    Fault("a run of slots goes on where another symbol begins", "codec/src/models/model_tables.cpp",
          "if (q > begin && bucket.other != buckets[q - 1].other - (kSlots << 12)) begin = q;", ""),
    Fault("what repeats nothing does not escape", "codec/src/engine/token_loop.h",
          "W::without(escaped, W::without(W::same(symbol, W::all_records(kMatchFollow)), nothing))",
          "W::without(escaped, W::same(symbol, W::all_records(kMatchFollow)))"),
    Fault("the encoder follows what is decoded in the same step", "codec/src/encode/token_follow.cpp",
          "steps_(place) >= step", "steps_(place) > step"),
    Fault("mirrored groups are not turned round", "kernels/src/output.cuh",
          "out.pixel_step < 0 ? 0x0123 : 0x3210", "0x3210"),
    Fault("a staged file begins where the one before it ends, also in its last unit", "kernels/src/stage_files.cu",
          "batch.staged_at[image + 1] <= at", "batch.staged_at[image + 1] < at"),
    Fault("keys of models stay from the call before", "kernels/src/decode_batch.cpp",
          "cudaMemsetAsync(batch.control, 0, zeros, stream)",
          "cudaMemsetAsync(batch.control, 0, sizeof(Control), stream)"),
    Fault("ranks that have one less begin where the others do", "loader/src/sampler.cpp",
          "position + sharing.rank * each + std::min(sharing.rank, more);", "position + sharing.rank * each;"),
    Fault("a window has the order of the one before", "loader/src/sampler.cpp",
          "hash_of(hash_of(key_, kUseWindow), window)", "hash_of(key_, kUseWindow)"),
    Fault("crops do not depend on the epoch", "loader/src/sampler.cpp",
          "hash_of(seed, epoch), kUseGroup)", "hash_of(seed, epoch * 0), kUseGroup)"),
    Fault("a mask has a crop of its own", "loader/src/pipeline.cpp",
          "image.random = random;", "image.random = random + tensor.channels;"),
    Fault("the taps of a mirrored image begin one too early", "base/include/base/resize_rules.h",
          "axis.region - begin - taps.count : begin", "axis.region - begin - taps.count - (begin > 0) : begin"),
    Fault("an edge is repeated where an image is mirrored", "base/include/base/resize_rules.h",
          "period = 2 * (count - 1)", "period = 2 * count - 1"),
    Fault("enlarged images are blurred", "base/include/base/resize_rules.h",
          "unit = 2 * (box > resized ? box : resized)", "unit = 2 * box"),
    Fault("an orientation of 7 is one of 5", "loader/include/loader/geometry.h",
          "o == 2 || o == 3 || o == 7 || o == 8", "o == 2 || o == 3 || o == 8"),
    Fault("mirrored images turn the other way", "loader/src/geometry.cpp",
          "steps.mirrored_x != (steps.turns == 1 || steps.turns == 2)",
          "steps.mirrored_x != (steps.turns == 3 || steps.turns == 2)"),
    Fault("a GPU loses the last column of a piece", "kernels/src/change_images.cu",
          "left > 0 && next < piece_end", "left > 0 && next + 1 < piece_end"),
    Fault("a GPU rounds rows down", "kernels/src/change_images.cu",
          "1u << (row_shift - 1); });\n    for (uint32_t tap", "0; });\n    for (uint32_t tap"),
    Fault("a GPU changes the colours of padding", "kernels/src/change_images.cu",
          "samples[c] = change.pad_value[c]; });", "samples[c] = change.pad_value[c]; });\n"
          "      changer.change_colours(samples);"),
    Fault("a GPU does not blend premultiplied colours as such", "kernels/src/change_images.cu",
          "most, change.blends == 2", "most, false"),
    Fault("a GPU turns nothing", "kernels/src/change_images.cu",
          "x = change.transposed != 0 ? row : column, y = change.transposed != 0 ? column : row;",
          "x = column, y = row;"),
    Fault("images of a list lie where those before them would, had none failed", "loader/src/pipeline_finish.cpp",
          "options_.batching == L3_BATCHING_LIST ? i : moved_to++", "moved_to++"),
    Fault("buckets take the rest of an epoch", "loader/src/buckets.cpp",
          "const uint64_t steps = count / step_;", "const uint64_t steps = (count + step_ - 1) / step_;"),
    Fault("what a skipped unit leaves is not closed up", "loader/src/pipeline_finish.cpp",
          "if (to != i)", "if (to > i)"),
    Fault("a unit of zeros keeps its label", "loader/src/pipeline_finish.cpp",
          "    if (failed[i]) job.labels[i] = -1;\n  }\n}", "  }\n}"),
    Fault("an image that is not what the index says is decoded", "loader/src/image_head.cpp",
          "info.bits != sample.bits || info.colour != sample.colour", "info.colour != sample.colour"),
    Fault("an image with another digest than the index says is decoded", "loader/src/image_head.cpp",
          "if (!std::equal(std::begin(info.digest)", "if (false && !std::equal(std::begin(info.digest)"),
    Fault("parts of a file begin a payload too late", "loader/src/image_reads.cpp",
          "range.offset = std::max(range.offset, image.prefix);",
          "range.offset = std::max(range.offset + 16, image.prefix);"),
    Fault("memory is written while a stream still reads it", "loader/src/memory_pool.cpp",
          "device_->use_until(memory, stream);", "(void)stream;"),
    Fault("ties of halves are rounded up", "loader/src/tensor_writer.cpp",
          "0xFFF + ((magnitude >> 13) & 1)", "0x1000"),
    Fault("mirrored rows lose what is behind the last sixteen", "loader/src/tensor_writer.cpp",
          "back[width - 1 - x] = row[x];", "back[x] = row[x];"),
    Fault("rows of words are counted from the tile's first one", "kernels/src/output.cuh",
          "first_(place.address(0, place.y0)),", "first_(place.address(0, 0)),"),
    Fault("NW of an encoded tile's first column is what is left of it", "kernels/src/encode_tile.cuh",
          "nw = x == 0 ? n : room_.left[c][r];", "nw = x == 0 ? 0 : room_.left[c][r];"),
    Fault("W of a later strip is that of the row above", "kernels/src/encode_tile.cuh",
          "w = x == 0 ? n : room_.left[c][r + 1];", "w = x == 0 ? n : room_.left[c][r];"),
    Fault("the first row of an encoded tile has no origin", "kernels/src/encode_tile.cuh",
          "has_row ? here[c].v : origin[c].v);\n      }\n    }\n    if", "here[c].v);\n      }\n    }\n    if"),
    Fault("columns outside an encoded tile count", "kernels/src/encode_tile.cuh",
          "static_cast<uint16_t>(x + lane < shape_.width ? here : 0)", "static_cast<uint16_t>(here)"),
    Fault("of two predictors or transforms that cost the same, an encoder takes the later one",
          "kernels/src/encode_tile.cuh", "      if (sum < minimum) {", "      if (sum <= minimum) {"),
    Fault("a fast payload as large as a raw one is written", "kernels/src/encode_tile.cuh",
          "if (padded >= raw) return 0;", "if (padded > raw) return 0;"),
    Fault("codes of samples outside the tile are written", "kernels/src/encode_tile.cuh",
          "codes[i] = i < count ? (here + half) & (range - 1) : 0;", "codes[i] = (here + half) & (range - 1);"),
    Fault("a code that lies in two words loses its end", "kernels/src/encode_tile.cuh",
          "if (shift != 0 && value >> (32 - shift) != 0) atomicOr", "if (shift > 40) atomicOr"),
    Fault("the end of a payload keeps a word of a block", "kernels/src/encode_tile.cuh",
          "i <= words; i += kLanes) room_.pending[i]", "i < words; i += kLanes) room_.pending[i]"),
    Fault("a sample above the range passes if it is not in the first row", "kernels/src/encode_tile.cuh",
          "          seen |= here[c].v;", "          if (y == 0) seen |= here[c].v;"),
    Fault("raw samples that lie in two words lose their end", "kernels/src/encode_tile.cuh",
          "shift < 0 ? value >> -shift : value << shift", "shift < 0 ? 0 : value << shift"),
    Fault("planes of an encoded image lie without padding", "kernels/src/encode_tiles.cu",
          "!planes ? sample : image.plane_stride != 0 ? image.plane_stride : state", "!planes ? sample : state"),
    Fault("an image over the capacity of tiles is encoded", "kernels/src/encode_tiles.cu",
          "before + state.head.tile_count > encoding.tile_capacity", "before > encoding.tile_capacity"),
    Fault("an image over the capacity of bytes is encoded", "kernels/src/encode_tiles.cu",
          "if (is_sound && sum > encoding.room_capacity)", "if (is_sound && sum - own > encoding.room_capacity)"),
    Fault("a file a byte too large for its memory is written", "kernels/src/encode_files.cu",
          "if (size > state.out_size)", "if (size > state.out_size + 1)"),
    Fault("SHA-256 of a file has the length in bytes", "kernels/src/encode_files.cu",
          "static_cast<uint32_t>(bytes << 3)", "static_cast<uint32_t>(bytes)"),
    Fault("payloads of later tiles overlap", "kernels/src/encode_files.cu",
          "units += __shfl_sync(kAllLanes, sum, kLanes - 1);", "units += __shfl_sync(kAllLanes, sum, 0);"),
    Fault("the padding of an index is not written", "kernels/src/encode_files.cu",
          "i < padded; i += kLanes)", "i < words; i += kLanes)"),
)


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=3600)


class Copy:
    """The tree under WORK, its build, and its tests."""

    def __init__(self, work: Path, options: list[str]) -> None:
        self.tree = work / "tree"
        self.build = work / "build"
        # New files are newer than what an interrupted run left in the build, which may have a fault in it.
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.mkdir(parents=True)
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, self.tree / part, copy_function=shutil.copyfile)
            elif (ROOT / part).exists():
                shutil.copyfile(ROOT / part, self.tree / part)
        done = run(["cmake", "-G", "Ninja", "-S", str(self.tree), "-B", str(self.build), "-DCMAKE_BUILD_TYPE=Release",
                    "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DL3_CUDA=OFF", "-DL3_TOOLS=OFF", *options])
        if done.returncode != 0:
            sys.exit(f"mutation_check: {done.stdout}{done.stderr}")
        vectors = self.build / "vectors"
        run([sys.executable, str(self.tree / "spec" / "vectors" / "build.py"), str(vectors)])
        os.environ["L3_VECTORS"] = str(vectors)

    def compile(self) -> str:
        done = run(["cmake", "--build", str(self.build), "--target", *PROGRAMS])
        return "" if done.returncode == 0 else done.stdout[-2000:]

    def first_red(self, only: str = "") -> str:
        """The first test that fails, of those whose names begin so, or nothing."""
        programs = self.build / "tests"
        tests = {
            "vectors": [sys.executable, str(self.tree / "tests" / "vectors_test.py"), "--no-oracle",
                        str(programs / "vector_verdicts")],
            "codec": [str(programs / "codec_test"), "--gtest_fail_fast"],
            "dense": [str(programs / "dense_test"), "--gtest_fail_fast"],
            "allocation": [str(programs / "allocation_test"), "--gtest_fail_fast"],
            "hostile": [str(programs / "hostile_test"), "--gtest_fail_fast"],
            "engine": [str(programs / "engine_test"), "--gtest_fail_fast"],
            "oracle": [sys.executable, str(self.tree / "tests" / "oracle_test.py"),
                       str(programs / "oracle_samples")],
            "gpu_parts": [str(programs / "gpu_model_parts_test"), "--gtest_fail_fast"],
            "gpu": [str(programs / "gpu_emulated_test"), "--gtest_fail_fast"],
            "loader_order": [str(programs / "loader_order_test"), "--gtest_fail_fast"],
            "loader": [str(programs / "loader_test"), "--gtest_fail_fast"],
            "loader_resample": [str(programs / "resample_test"), "--gtest_fail_fast"],
            "loader_gpu": [str(programs / "loader_gpu_test"), "--gtest_fail_fast"],
        }
        tests = {name: test for name, test in tests.items() if not only or name.startswith(only)}
        for name, command in tests.items():
            if run(command).returncode != 0:
                return name
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutation_check.py", description="Plant faults that tests must notice.")
    parser.add_argument("--list", action="store_true", help="say what the faults are")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION", help="a further option for CMake")
    parser.add_argument("work", nargs="?", type=Path, metavar="WORK")
    parser.add_argument("numbers", nargs="*", type=int, metavar="N")
    options = parser.parse_args()
    if options.list or options.work is None:
        for number, fault in enumerate(FAULTS, 1):
            print(f"{number:>3}  {fault.what} ({fault.file})")
        return 0
    copy = Copy(options.work.resolve(), options.cmake)
    if problem := copy.compile() or copy.first_red():
        sys.exit(f"mutation_check: red without any fault: {problem}")
    unnoticed = 0
    for number in options.numbers or range(1, len(FAULTS) + 1):
        fault = FAULTS[number - 1]
        path = copy.tree / fault.file
        before = path.read_text()
        if before.count(fault.old) != 1:
            sys.exit(f"mutation_check: fault {number} is not to be planted: {before.count(fault.old)} places")
        path.write_text(before.replace(fault.old, fault.new))
        problem = copy.compile()
        only = {"kernels": "gpu", "loader": "loader", "base": "loader"}.get(fault.file.split("/")[0], "")
        if fault.file.endswith("change_images.cu"):
            only = "loader_gpu"
        noticed = f"does not compile: {problem}" if problem else copy.first_red(only)
        path.write_text(before)
        unnoticed += not noticed
        print(f"{number:>3}  {fault.what}: {noticed or 'NOT NOTICED'}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
