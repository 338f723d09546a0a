#include "raise.h"

namespace l3_python {

namespace nb = nanobind;

namespace {

nb::object number_or_none(uint64_t number) { return number == UINT64_MAX ? nb::none() : nb::cast(number); }

// Texts of the library may contain file names, which need not be UTF-8.
nb::object text_of(const char* text) { return nb::steal(PyUnicode_DecodeFSDefault(text)); }

nb::object text_or_none(const char* text) { return text[0] != 0 ? text_of(text) : nb::none(); }

[[noreturn]] void raise_made(const char* maker, const nb::object& first, const nb::object& second,
                             const nb::object& third, const nb::object& fourth, const nb::object& fifth) {
  const nb::object exception = nb::module_::import_("l3._errors").attr(maker)(first, second, third, fourth, fifth);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace

void raise_error(const l3_error& error, const std::string& file) {
  std::string reason = error.reason != nullptr ? error.reason : l3_status_text(error.status);
  if (error.tile != L3_NO_TILE) reason += " (tile " + std::to_string(error.tile) + ")";
  const bool has_offset = error.status != L3_ERROR_ARGUMENT && error.status != L3_ERROR_BUFFER &&
                          error.status != L3_ERROR_MEMORY && error.status != L3_ERROR_DEVICE;
  raise_made("error_of", nb::int_(static_cast<int>(error.status)), text_of(reason.c_str()),
             number_or_none(has_offset ? error.offset : UINT64_MAX), text_or_none(file.c_str()), nb::int_(0));
}

void raise_error(const l3_data_error& error) {
  raise_made("error_of", nb::int_(static_cast<int>(error.status)), text_of(error.reason), number_or_none(error.offset),
             text_or_none(error.file), nb::int_(error.system_error));
}

void raise_sample_error(const l3_data_error& error, uint64_t sample, const std::string& name) {
  raise_made("sample_error_of", text_of(error.reason), number_or_none(error.offset), text_or_none(error.file),
             number_or_none(sample), text_or_none(name.c_str()));
}

void raise_memory_error() {
  PyErr_SetNone(PyExc_MemoryError);
  throw nb::python_error();
}

}  // namespace l3_python
