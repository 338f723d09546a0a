// Measures how many bytes each part of a file takes (l3_measure).
#include "api/options.h"
#include "container/logarithm.h"
#include "decode/file.h"

namespace l3 {
namespace {

// The bits that a dense tile's symbols take. They are those that its coder loses: decoding a symbol makes the state
// smaller by what the symbol is worth, and the bytes of the payload make up for it.
struct SymbolBits {
  double classes = 0, samples = 0;

  void add(const TileEntry& entry, const CoderStates (&stages)[2]) {
    const uint32_t lanes = dense_lanes(entry.parameters);
    CoderStates first;
    first.taken = 4 * lanes;
    for (uint32_t lane = 0; lane < lanes; ++lane) first.of[lane] = load_u32(entry.payload + 4 * lane);
    classes += between(first, stages[0], lanes);
    samples += between(stages[0], stages[1], lanes);
  }

 private:
  static double between(const CoderStates& before, const CoderStates& after, uint32_t lanes) {
    double bits = 8.0 * (after.taken - before.taken);
    for (uint32_t lane = 0; lane < lanes; ++lane) bits += logarithm(before.of[lane]) - logarithm(after.of[lane]);
    return bits;
  }
};

Verdict measure(const l3_file& file, l3_sizes& sizes) {
  const Head& head = file.head;
  sizes.head = head.head_bytes;
  sizes.index = head.is_tiny() ? 0 : head.index_end - head.head_bytes;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const bool is_model = head.sections[i].type == L3_SECTION_MODEL;
    const uint64_t bytes = head.is_tiny() && !is_model ? head.sections[i].size : pad_to_unit(head.sections[i].size);
    (is_model ? sizes.model : sizes.sections) += bytes;
  }
  SymbolBits bits;
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    TileEntry entry = read_entry(head, file.data, tile);
    if (!has_payload(entry.method)) continue;
    sizes.payloads += entry.payload_bytes;
    if (entry.method != Method::dense) continue;
    const Verdict verdict = check_tile(file, tile, entry);
    if (!verdict.ok()) return verdict;
    if (entry.method != Method::dense) return {Reason::index_check, head.head_bytes, tile};  // it changes meanwhile
    sizes.dense_payloads += entry.payload_bytes;
    sizes.dense_states += uint64_t{4} * dense_lanes(entry.parameters);
    CoderStates stages[2];
    TileOutput out{};
    out.states = stages;
    Fault fault;
    ModelKinds::visit(file.model->kind, [&]<class Kind>() {
      fault = file.target->decoder(Kind{})(head.tile_shape(tile), entry, out, file.model->of(Kind{}));
    });
    if (fault.reason != Reason::none) {
      return {fault.reason, static_cast<uint64_t>(entry.payload - file.data) + fault.at, tile};
    }
    bits.add(entry, stages);
  }
  if (head.is_tiny()) sizes.head = file.size - sizes.model - sizes.sections - sizes.payloads;
  sizes.dense_classes = static_cast<uint64_t>((bits.classes + 7) / 8);
  sizes.dense_samples = static_cast<uint64_t>((bits.samples + 7) / 8);
  return {};
}

l3_status report_sizes(const l3_file& file, l3_sizes* sizes, l3_error* error) {
  l3_sizes own{};
  if (!copy_sized(sizes, own)) return fail(error, Reason::bad_struct_size);
  const uint32_t struct_size = own.struct_size;
  own = l3_sizes{};
  own.struct_size = struct_size;
  const Verdict verdict = measure(file, own);
  if (verdict.ok()) std::memcpy(sizes, &own, struct_size < sizeof(own) ? struct_size : sizeof(own));
  return report(error, verdict);
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_measure(const void* data, size_t size, const l3_decode_options* options, l3_sizes* sizes,
                     l3_error* error) {
  l3_sizes own{};
  if (sizes == nullptr) return fail(error, Reason::null_argument);
  if (!copy_sized(sizes, own)) return fail(error, Reason::bad_struct_size);
  l3_file file;
  Verdict verdict = file.read(data, size, options);
  if (verdict.ok()) verdict = file.check_container(NamedModel::required);
  return verdict.ok() ? report_sizes(file, sizes, error) : report(error, verdict);
}

l3_status l3_file_measure(const l3_file* file, l3_sizes* sizes, l3_error* error) {
  if (file == nullptr || sizes == nullptr) return fail(error, Reason::null_argument);
  return file->of_model.ok() ? report_sizes(*file, sizes, error) : report(error, file->of_model);
}
