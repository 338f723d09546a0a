// The texts of l3.h: of statuses, reasons, methods and the version.
#include "container/methods.h"

using namespace l3;

const char* l3_status_text(l3_status status) {
  switch (status) {
    case L3_OK: return "no error";
    case L3_ERROR_ARGUMENT: return "wrong argument";
    case L3_ERROR_NOT_L3: return "not an L3 file";
    case L3_ERROR_UNSUPPORTED: return "not supported by this version";
    case L3_ERROR_CORRUPT: return "the file is corrupt";
    case L3_ERROR_TRUNCATED: return "the file is truncated";
    case L3_ERROR_LIMIT: return "over a limit";
    case L3_ERROR_BUFFER: return "the output buffer is too small";
    case L3_ERROR_MEMORY: return "out of memory";
    case L3_ERROR_DEVICE: return "the device failed";
    case L3_ERROR_MODEL: return "the model that the file names is missing";
    case L3_ERROR_FILE: return "a file cannot be read";
  }
  return "unknown status";
}

l3_status l3_describe_reason(uint32_t reason, const char** text) {
  if (text != nullptr) *text = text_of(static_cast<Reason>(reason));
  return status_of(static_cast<Reason>(reason));
}

const char* l3_tile_method_text(uint32_t method) {
  const char* text = nullptr;
  if (method <= UINT8_MAX) Methods::visit(static_cast<Method>(method), [&]<class Row>() { text = Row::kName; });
  return text;
}

uint32_t l3_version(void) { return 10000 * L3_VERSION_MAJOR + 100 * L3_VERSION_MINOR + L3_VERSION_PATCH; }

#define L3_TEXT_OF(x) #x
#define L3_TEXT(x) L3_TEXT_OF(x)
const char* l3_version_text(void) {
  return L3_TEXT(L3_VERSION_MAJOR) "." L3_TEXT(L3_VERSION_MINOR) "." L3_TEXT(L3_VERSION_PATCH);
}
