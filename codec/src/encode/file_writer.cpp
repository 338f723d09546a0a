// Implements file_writer.h.
#include "encode/file_writer.h"

#include <cstring>
#include <memory>

#include "container/metadata.h"
#include "decode/container.h"
#include "encode/image_check.h"
#include "encode/tile_writer.h"
#include "encode/tiny_file.h"

namespace l3 {
namespace {

struct MadeEncoder {
  Reason reason = Reason::none;
  std::unique_ptr<ModelEncoder> encoder;  // null if the plan has no model
};

// Fits the model, or uses the known one.
MadeEncoder make_encoder(const Request& request, const Plan& plan, const EncodeTarget& target, const Head& head,
                         Fitted fitted) {
  if (plan.origin == L3_MODEL_NONE) return {};
  if (fitted.dense != nullptr) {
    fitted.dense->fit_rest();
    return {Reason::none, std::move(fitted.dense)};
  }
  if (fitted.bits != nullptr) return {Reason::none, std::move(fitted.bits)};
  const TileSource source(head, static_cast<const uint8_t*>(request.image.pixels), stride_of(request.image));
  const l3_parallel& parallel = request.options.parallel;
  const std::span<const uint8_t> known = known_model(request, plan);
  const uint32_t kind = model_kind(request, plan);
  if (kind == kBitModelKind) {
    auto bits = std::make_unique<BitEncoder>(source, parallel);
    BitColours colours;
    Fault fault;
    if (!known.empty()) {
      fault = bits->use(known, kept_codes(request, plan));
    } else if (find_two_colours(source, colours)) {
      bits->fit(colours, plan.effort);
    }
    return {fault.reason, std::move(bits)};
  }
  if (kind == kTokenModelKind) {
    auto tokens = std::make_unique<TokenEncoder>(source, parallel);
    Fault fault;
    if (known.empty()) {
      tokens->fit(plan.token_plan, plan.effort);
    } else {
      fault = tokens->use(known, kept_codes(request, plan));
    }
    return {fault.reason, std::move(tokens)};
  }
  if (head.bits != 8) return {Reason::model_unexpected, nullptr};
  auto dense = std::make_unique<DenseEncoder>(source, target.dense, parallel);
  Fault fault;
  if (known.empty()) {
    dense->fit(plan.effort);
  } else {
    fault = dense->use(known, kept_codes(request, plan), plan.effort);
  }
  return {fault.reason, std::move(dense)};
}

// Writes the metadata as planned, which determines the layout of the file. Returns its size, or 0 if that failed.
size_t write_metadata(const Request& request, const Head& largest, uint8_t* out) {
  const Section* section = largest.find(L3_SECTION_METADATA);
  return pack_metadata(request.image.metadata, request.image.metadata_size, out + section->offset, section->size);
}

// Writes all sections except for the metadata, which is in its place, and returns their checks in the head.
Head write_sections(const Request& request, std::span<const uint8_t> model, const Head& head,
                    const EncodeTarget& target, uint8_t* out) {
  const auto bytes_of = [&](uint32_t type) {
    switch (type) {
      case L3_SECTION_TRANSPARENCY: return request.image.transparency;
      case L3_SECTION_COLOUR_SPACE: return request.image.colour_space;
      case L3_SECTION_ICC: return request.image.icc;
      case L3_SECTION_EXIF: return request.image.exif;
      default: return model.data();
    }
  };
  Head result = head;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    Section& section = result.sections[i];
    uint8_t* at = out + section.offset;
    if (section.type == L3_SECTION_PALETTE) {
      write_palette(request.palette, at);
    } else if (section.type == L3_SECTION_CHANNEL_MAP) {
      write_channel_map(head.map, head.channels, at);
    } else if (section.type != L3_SECTION_METADATA) {
      std::memcpy(at, bytes_of(section.type), section.size);
    }
    const uint64_t padded = pad_to_unit(section.size);
    std::memset(at + section.size, 0, padded - section.size);
    section.check = target.check(at, padded / 4);
  }
  return result;
}

// How many bytes a model adds to a file: its name, or its section and entry and the change of the index's padding.
uint64_t model_bytes(const Head& head) {
  if (head.names_model()) return kModelNameBytes;
  if (may_be_tiny(head)) return pad_to_unit(head.find(L3_SECTION_MODEL)->size);
  const uint64_t index_end = head.head_bytes + head.tile_count * kIndexEntryBytes;
  return pad_to_unit(head.find(L3_SECTION_MODEL)->size) + pad_to_unit(index_end) -
         pad_to_unit(index_end - kSectionEntryBytes);
}

// Whether the file should have this model, if another one is allowed.
bool pays(const Request& request, const Plan& plan, const Head& head, uint64_t saved_bytes) {
  const bool has_price = plan.origin == L3_MODEL_OWN || plan.origin == L3_MODEL_NAMED;
  return !has_price || request.options.method != L3_METHOD_AUTO || saved_bytes > model_bytes(head);
}

// Whether a file has tiles that are neither dense nor constant.
bool has_other_tiles(const Head& head, const uint8_t* file) {
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    const Method method = read_entry(head, file, tile).method;
    if (method != Method::dense && method != Method::constant) return true;
  }
  return false;
}

}  // namespace

Written write_file(const Request& request, const Plan& plan, const EncodeTarget& target, uint8_t* out, Fitted fitted) {
  const Head first = head_of(request, plan);
  const MadeEncoder made = make_encoder(request, plan, target, first, std::move(fitted));
  if (made.reason != Reason::none) return {made.reason};
  const std::span<const uint8_t> known = known_model(request, plan);
  const std::span<const uint8_t> model = known.empty() && made.encoder != nullptr ? made.encoder->model() : known;

  const Head largest = lay_out(request, plan, model.size(), metadata_bound(request.image.metadata_size));
  const bool has_metadata = largest.find(L3_SECTION_METADATA) != nullptr;
  const size_t metadata = has_metadata ? write_metadata(request, largest, out) : 0;
  if (has_metadata && metadata == 0) return {Reason::pack_failed};
  Head head = write_sections(request, model, lay_out(request, plan, model.size(), metadata), target, out);
  head.required_features |= features_of_model(model.data(), model.size());

  const TilesWritten tiles = write_tiles(request, head, target, made.encoder.get(), out);
  if (tiles.reason != Reason::none) return {tiles.reason};
  if (tiles.saved_bytes == 0) head.default_model = 0;  // no tile needs it
  const bool model_pays = pays(request, plan, head, tiles.saved_bytes);
  const uint64_t end = close_gaps(head, out);
  if (end > kMaxFileBytes) return {Reason::file_too_large};
  const uint8_t* name = request.options.named_model != nullptr ? request.options.named_model->name : nullptr;
  Written file{Reason::none, 0, head, end - head.payload_start, has_other_tiles(head, out), model_pays};
  // With the method fast, files are those that the GPU encoder writes.
  const bool is_fast = request.options.method == L3_METHOD_FAST;
  file.size = is_fast ? 0 : make_tiny(head, target.check, name, tiles.used_bytes, out);
  if (file.size == 0) {
    write_head(head, target.check, name, out);
    file.size = end;
  }
  return file;
}

}  // namespace l3
