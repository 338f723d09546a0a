#include "failure.h"

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

namespace tools {

std::string display_name(const std::string& path, const char* when_dash) { return path == "-" ? when_dash : path; }

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte != 0x7F) {
      line += letter;
    } else {
      char spelled[5];
      std::snprintf(spelled, sizeof spelled, "\\x%02X", byte);
      line += spelled;
    }
  }
  return line;
}

Failure caught(std::string file) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {std::move(file), std::nullopt, "out of memory"};
  } catch (const std::length_error&) {
    return {std::move(file), std::nullopt, "out of memory"};
  } catch (const std::exception& error) {
    return {std::move(file), std::nullopt, error.what()};
  } catch (...) {
    return {std::move(file), std::nullopt, "failed for an unknown reason"};
  }
}

bool is_out_of_memory(const Failure& failure) {
  // Image libraries and the system have their own words for it, such as "Insufficient memory" or "Cannot allocate
  // memory".
  return failure.reason.find("memory") != std::string::npos;
}

std::string message(const Failure& failure) {
  std::string text = "l3: ";
  if (!failure.file.empty()) text += one_line(failure.file) + ": ";
  if (failure.offset) text += "offset " + std::to_string(*failure.offset) + ": ";
  return text + one_line(failure.reason);
}

}  // namespace tools
