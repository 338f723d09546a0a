#include "data_set.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <set>

#include "l3/l3_data.hpp"
#include "raise.h"
#include "store.h"

namespace l3_python {
namespace {

using namespace nb::literals;

// Names are usually UTF-8. Other bytes are decoded as Python decodes file names.
nb::object text_of(const char* text, size_t size) {
  return nb::steal<nb::object>(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "surrogateescape"));
}

l3_data_sample sample_at(const DataSet& self, uint64_t index) {
  l3_data_sample sample = l3_data_sample_init();
  if (l3_data_get(self.set.get(), index, &sample) != L3_OK) throw nb::index_error("sample number out of range");
  return sample;
}

// `certificates` is a file, and `cache` names places. Both may be empty, and stay with the caller.
l3_data_options options_of(const nb::dict& wanted, const std::string& certificates, const std::string& cache) {
  const auto number = [&](const char* option) { return nb::cast<uint32_t>(nb::object(wanted[option])); };
  l3_data_options options = l3_data_options_init();
  options.max_open_files = number("max_open_files");
  options.timeout_ms = number("timeout_ms");
  options.attempts = number("attempts");
  options.connections = number("connections");
  options.hedge = number("hedge");
  if (!certificates.empty()) options.certificates = certificates.c_str();
  if (!cache.empty()) options.cache = cache.c_str();
  return options;
}

// Calls `open` without the interpreter's lock.
template <class Open>
DataSet opened_by(const Open& open) {
  l3_data_set* set = nullptr;
  l3_data_error error{};
  l3_status status = L3_OK;
  {
    const nb::gil_scoped_release unlocked;
    status = open(&set, &error);
  }
  if (status != L3_OK) raise_error(error);
  return {std::shared_ptr<const l3_data_set>(
      set, [](const l3_data_set* closed) { l3_data_close(const_cast<l3_data_set*>(closed)); })};
}

std::string text_in(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

DataSet open(const nb::bytes& path, const nb::dict& wanted, const nb::bytes& certificates, const nb::bytes& cache) {
  const std::string name = text_in(path), file = text_in(certificates), places = text_in(cache);
  const l3_data_options options = options_of(wanted, file, places);
  return opened_by(
      [&](l3_data_set** set, l3_data_error* error) { return l3_data_open(name.c_str(), &options, set, error); });
}

DataSet open_store(const StoreRequests& requests, const nb::bytes& name, const nb::dict& wanted,
                   const nb::bytes& cache) {
  const std::string shown = text_in(name), places = text_in(cache);
  const l3_data_options options = options_of(wanted, {}, places);
  const l3_store store = store_of(requests.shared);
  return opened_by([&](l3_data_set** set, l3_data_error* error) {
    return l3_data_open_store(&store, shown.c_str(), &options, set, error);
  });
}

nb::dict describe(const DataSet& self) {
  l3_data_info info = l3_data_info_init();
  (void)!l3_data_describe(self.set.get(), &info);
  nb::dict shown;
  shown["samples"] = info.samples;
  shown["groups"] = info.groups;
  shown["shards"] = info.shards;
  shown["bytes"] = info.bytes;
  nb::list classes;
  for (uint32_t label = 0; label < info.classes; ++label) {
    const char* name = l3_data_class(self.set.get(), label);
    classes.append(text_of(name, std::char_traits<char>::length(name)));
  }
  shown["classes"] = classes;
  return shown;
}

// None if the data set has no cache.
nb::object describe_cache(const DataSet& self) {
  l3_data_cache_info info = l3_data_cache_info_init();
  (void)!l3_data_cache(self.set.get(), &info);
  if (info.places == 0) return nb::none();
  nb::dict shown;
  shown["places"] = info.places;
  shown["samples"] = info.samples;
  shown["bytes"] = info.bytes;
  shown["hits"] = info.hits;
  shown["hit_bytes"] = info.hit_bytes;
  shown["misses"] = info.misses;
  shown["miss_bytes"] = info.miss_bytes;
  shown["others"] = info.others;
  shown["other_bytes"] = info.other_bytes;
  shown["kept"] = info.kept;
  shown["damaged"] = info.damaged;
  shown["failures"] = info.failures;
  const std::string file = info.last_failure.file;
  const std::string text = (file.empty() ? file : file + ": ") + info.last_failure.reason;
  shown["last_failure"] = info.failures == 0 ? nb::none() : text_of(text.data(), text.size());
  return shown;
}

nb::dict describe_sample(const DataSet& self, uint64_t index) {
  const l3_data_sample sample = sample_at(self, index);
  nb::dict shown;
  shown["name"] = text_of(sample.name, sample.name_size);
  shown["role"] = text_of(sample.role, sample.role_size);
  shown["is_image"] = sample.kind == L3_DATA_IMAGE;
  shown["size"] = sample.size;
  shown["width"] = sample.width;
  shown["height"] = sample.height;
  shown["channels"] = sample.channels;
  shown["bits"] = sample.bits;
  shown["colour"] = sample.kind == L3_DATA_IMAGE ? nb::cast(colour_name(sample.colour)) : nb::none();
  shown["label"] = sample.label == L3_NO_LABEL ? nb::none() : nb::cast(sample.label);
  shown["group"] = sample.group;
  shown["shard"] = sample.shard;
  return shown;
}

// Roles in the order of their first use.
nb::list roles(const DataSet& self) {
  l3_data_info info = l3_data_info_init();
  (void)!l3_data_describe(self.set.get(), &info);
  std::set<std::string_view> seen;
  nb::list names;
  for (uint64_t i = 0; i < info.samples; ++i) {
    const l3_data_sample sample = sample_at(self, i);
    const std::string_view role(sample.role, sample.role_size);
    if (seen.insert(role).second) names.append(text_of(role.data(), role.size()));
  }
  return names;
}

// The bits of a role's image in a group, or of the first image if the role is None; 8 if there is no such image.
uint32_t bits_of(const DataSet& self, const nb::object& role, uint64_t group, bool as_colours) {
  const std::string wanted = role.is_none() ? std::string() : nb::cast<std::string>(role);
  uint64_t first = 0, count = 0;
  if (l3_data_group(self.set.get(), group, &first, &count) != L3_OK) return 8;
  for (uint64_t i = first; i < first + count; ++i) {
    const l3_data_sample sample = sample_at(self, i);
    if (sample.kind != L3_DATA_IMAGE) continue;
    if (!role.is_none() && std::string_view(sample.role, sample.role_size) != wanted) continue;
    return as_colours && sample.colour == L3_COLOUR_PALETTE ? 8 : sample.bits;
  }
  return 8;
}

// The labels of all samples as int64_t; -1 for a sample without one.
nb::bytes labels(const DataSet& self) {
  l3_data_info info = l3_data_info_init();
  (void)!l3_data_describe(self.set.get(), &info);
  const nb::object bytes = nb::steal<nb::object>(
      PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(info.samples * sizeof(int64_t))));
  if (!bytes.is_valid()) throw nb::python_error();
  char* to = PyBytes_AsString(bytes.ptr());
  {
    const nb::gil_scoped_release unlocked;
    l3_data_sample sample = l3_data_sample_init();
    for (uint64_t i = 0; i < info.samples; ++i) {
      const bool has_label = l3_data_get(self.set.get(), i, &sample) == L3_OK && sample.label != L3_NO_LABEL;
      const int64_t label = has_label ? int64_t{sample.label} : -1;
      std::memcpy(to + i * sizeof(label), &label, sizeof(label));
    }
  }
  return nb::borrow<nb::bytes>(bytes);
}

nb::bytes read(const DataSet& self, uint64_t index) {
  const l3_data_sample sample = sample_at(self, index);
  const nb::object bytes =
      nb::steal<nb::object>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(sample.size)));
  if (!bytes.is_valid()) throw nb::python_error();
  l3_data_error error{};
  l3_status status = L3_OK;
  char* to = PyBytes_AsString(bytes.ptr());
  {
    const nb::gil_scoped_release unlocked;
    status = l3_data_read(self.set.get(), index, to, sample.size, &error);
  }
  if (status != L3_OK) raise_sample_error(error, index, sample_name(self.set.get(), index));
  return nb::borrow<nb::bytes>(bytes);
}

Model open_model(const nb::bytes& bytes) {
  l3_model* model = nullptr;
  l3_error error{};
  if (l3_open_model(bytes.c_str(), bytes.size(), &model, &error) != L3_OK) raise_error(error);
  return {std::unique_ptr<l3_model, CloseModel>(model)};
}

}  // namespace

const char* colour_name(uint32_t colour) {
  switch (colour) {
    case L3_COLOUR_GRAY: return "gray";
    case L3_COLOUR_GRAY_ALPHA: return "gray_alpha";
    case L3_COLOUR_RGB: return "rgb";
    case L3_COLOUR_RGB_ALPHA: return "rgb_alpha";
    default: return "palette";
  }
}

std::string sample_name(const l3_data_set* set, uint64_t sample) {
  l3_data_sample entry = l3_data_sample_init();
  if (sample == L3_DATA_NONE || l3_data_get(set, sample, &entry) != L3_OK) return {};
  return {entry.name, entry.name_size};
}

void bind_data_set(nb::module_& module) {
  nb::class_<Model>(module, "Model", nb::is_final())
      .def_static("open", &open_model)
      .def_prop_ro("contents",
                   [](const Model& self) {
                     l3_model_info info = l3_model_info_init();
                     (void)!l3_describe_model(self.model.get(), &info, nullptr);
                     return nb::bytes(info.bytes, info.size);
                   })
      .def_prop_ro("name", [](const Model& self) {
        l3_model_info info = l3_model_info_init();
        (void)!l3_describe_model(self.model.get(), &info, nullptr);
        return nb::bytes(info.name, sizeof(info.name));
      });
  nb::class_<DataSet>(module, "DataSet", nb::is_final())
      .def_static("open", &open, "path"_a, "options"_a, "certificates"_a, "cache"_a)
      .def_static("open_store", &open_store, "requests"_a, "name"_a, "options"_a, "cache"_a)
      .def("describe", &describe)
      .def("describe_cache", &describe_cache)
      .def("describe_sample", &describe_sample)
      .def("roles", &roles)
      .def("bits_of", &bits_of, "role"_a.none(), "group"_a, "as_colours"_a)
      .def("group_of", [](const DataSet& self, uint64_t index) { return sample_at(self, index).group; })
      .def("label_of",
           [](const DataSet& self, uint64_t index) {
             const uint32_t label = sample_at(self, index).label;
             return label == L3_NO_LABEL ? nb::none() : nb::cast(label);
           })
      .def("labels", &labels)
      .def("name_of",
           [](const DataSet& self, uint64_t index) {
             const l3_data_sample sample = sample_at(self, index);
             return text_of(sample.name, sample.name_size);
           })
      .def("metadata_of",
           [](const DataSet& self, uint64_t index) {
             const l3_data_sample sample = sample_at(self, index);
             return nb::bytes(sample.metadata, sample.metadata_size);
           })
      .def("group",
           [](const DataSet& self, uint64_t group) {
             uint64_t first = 0, count = 0;
             if (l3_data_group(self.set.get(), group, &first, &count) != L3_OK) {
               throw nb::index_error("group number out of range");
             }
             return nb::make_tuple(first, count);
           })
      .def("find",
           [](const DataSet& self, const nb::bytes& name) {
             const uint64_t index = l3_data_find(self.set.get(), name.c_str(), name.size());
             return index == L3_DATA_NONE ? nb::none() : nb::cast(index);
           })
      .def("read", &read);
}

}  // namespace l3_python
