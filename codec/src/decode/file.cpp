// Opens files: the stages in file.h, l3_open and l3_close.
#include "decode/file.h"

#include <new>

#include "api/options.h"

namespace l3 {
namespace {

// Returns the first place for an object in the memory, or null if it does not fit.
template <class Object>
void* place_for(void* memory, size_t size) {
  return std::align(alignof(Object), sizeof(Object), memory, size);
}

// The alignment of the memory may cost one alignment less a byte for each of the two objects.
constexpr size_t kFileBytes = sizeof(l3_file) + alignof(l3_file) - 1;
static_assert(kFileBytes <= L3_WORKSPACE_MIN_BYTES);
static_assert(kFileBytes + sizeof(ModelTables) + alignof(ModelTables) - 1 <= L3_WORKSPACE_BYTES);

}  // namespace
}  // namespace l3

using namespace l3;

Verdict l3_file::read(const void* bytes, size_t bytes_size, const l3_decode_options* wanted) {
  if (bytes == nullptr) return {Reason::null_argument};
  if (!copy_sized(wanted, options)) return {Reason::bad_struct_size};
  if (options.models == nullptr && options.model_count != 0) return {Reason::null_argument};
  target = l3::target();
  if (target == nullptr) return {Reason::unknown_cpu_target};
  limits = with_defaults(&options.limits);
  data = static_cast<const uint8_t*>(bytes);
  size = bytes_size;
  return read_head(data, size, *target, head);
}

Verdict l3_file::check_container(NamedModel named) {
  Verdict verdict = check_index(data, size, *target, head);
  if (verdict.ok()) verdict = check_sections(data, size, *target, head);
  if (!verdict.ok()) return verdict;
  of_model = find_model();
  if (!of_model.ok() && (named == NamedModel::required || !head.names_model())) return of_model;
  verdict = check_entries(data, size, head);
  if (!verdict.ok()) return verdict;
  if (writes_colours()) {
    const PixelTable pixels(data, head);
    for (uint32_t sample = 0; sample < 256; ++sample) store_u32(colours + 4 * sample, pixels[sample]);
  }
  is_container_checked = true;
  return {};
}

Verdict l3_file::find_model() {
  ModelTables* own = nullptr;
  if (head.model_origin() == L3_MODEL_OWN) {
    if (workspace != nullptr) {
      void* const place = place_for<ModelTables>(workspace, workspace_size);
      if (place == nullptr) return {Reason::buffer_too_small};
      own = new (place) ModelTables;
    } else {
      allocated.reset(new (std::nothrow) ModelTables);
      if (allocated == nullptr) return {Reason::out_of_memory};
      own = allocated.get();
    }
  }
  return l3::find_model(data, head, {options.models, options.model_count}, own, model);
}

uint32_t l3_file::pixel_bytes() const {
  if (!has_colours()) return head.pixel_bytes();
  return head.find(L3_SECTION_TRANSPARENCY) != nullptr ? 4 : 3;
}

l3_status l3_open(const void* data, size_t size, const l3_decode_options* options, void* workspace,
                  size_t workspace_size, l3_file** file, l3_error* error) {
  if (file == nullptr) return fail(error, Reason::null_argument);
  *file = nullptr;
  if (data == nullptr) return fail(error, Reason::null_argument);
  l3_file* opened = nullptr;
  if (workspace == nullptr) {
    opened = new (std::nothrow) l3_file;
    if (opened == nullptr) return fail(error, Reason::out_of_memory);
  } else {
    void* const place = place_for<l3_file>(workspace, workspace_size);
    if (place == nullptr) return fail(error, Reason::buffer_too_small);
    if (overlap(data, size, workspace, workspace_size)) return fail(error, Reason::buffers_overlap);
    opened = new (place) l3_file;
    opened->workspace = static_cast<uint8_t*>(place) + sizeof(l3_file);
    opened->workspace_size = workspace_size - static_cast<size_t>(opened->workspace - static_cast<uint8_t*>(workspace));
  }
  Verdict verdict = opened->read(data, size, options);
  if (verdict.ok()) verdict = opened->check_container(NamedModel::later);
  if (!verdict.ok()) {
    l3_close(opened);
    return report(error, verdict);
  }
  *file = opened;
  return succeed(error);
}

void l3_close(l3_file* file) {
  if (file != nullptr && file->workspace == nullptr) delete file;
}
