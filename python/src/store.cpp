#include "store.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "store_requests.h"

namespace l3_python {
namespace {

using namespace nb::literals;

// Copying this many bytes takes longer than giving the interpreter's lock away.
constexpr Py_ssize_t kLargeCopy = 256 << 10;

void add(void* context, const char* key, uint64_t offset, uint64_t size, bool wants_size, l3_store_request known) {
  RequestQueue* const queue = (*static_cast<std::shared_ptr<Requests>*>(context))->queue();
  if (queue == nullptr) {
    return l3_store_fail(known, L3_ERROR_FILE, 0, "a store in Python needs os.fork, or a new process");
  }
  try {
    queue->add({known, key, offset, size, wants_size});
  } catch (const std::bad_alloc&) {
    l3_store_fail(known, L3_ERROR_MEMORY, 0, "out of memory");
  }
}

// A request that Python has taken.
struct Taken {
  StoreRequest request;
  std::shared_ptr<Requests> requests;

  void finish_size(uint64_t size) const {
    if (RequestQueue* const queue = requests->queue()) queue->finish(request.known, nullptr, size);
  }
  void finish(const nb::object& bytes) const;
  void fail(int status, int system_error, const nb::bytes& reason) const {
    const std::string text(reason.c_str(), reason.size());
    RequestQueue* const queue = requests->queue();
    if (queue != nullptr) queue->fail(request.known, static_cast<l3_status>(status), system_error, text.c_str());
  }
};

class Buffer {
 public:
  explicit Buffer(const nb::object& of) {
    if (PyObject_GetBuffer(of.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_{};
};

void Taken::finish(const nb::object& bytes) const {
  RequestQueue* const queue = requests->queue();
  if (queue == nullptr) return;
  const Buffer buffer(bytes);
  const auto answer = [&] {
    // An empty buffer may be a null pointer.
    queue->finish(request.known, buffer->len > 0 ? buffer->buf : "", static_cast<uint64_t>(buffer->len));
  };
  if (buffer->len < kLargeCopy || queue->is_closed()) return answer();
  const nb::gil_scoped_release unlocked;
  answer();
}

RequestQueue& queue_of(const StoreRequests& self) {
  RequestQueue* const queue = self.shared->queue();
  if (queue == nullptr) throw nb::value_error("these requests belong to the parent process");
  return *queue;
}

nb::object take(const StoreRequests& self) {
  RequestQueue& queue = queue_of(self);
  std::optional<StoreRequest> taken;
  bool is_short = false;
  {
    const nb::gil_scoped_release unlocked;
    taken = queue.take(is_short);
  }
  if (!taken) return nb::none();
  return nb::make_tuple(Taken{std::move(*taken), self.shared}, is_short);
}

nb::tuple drain(const StoreRequests& self) {
  std::vector<StoreRequest> requests;
  std::vector<uint64_t> cancelled;
  queue_of(self).drain(requests, cancelled);
  nb::list taken;
  for (StoreRequest& request : requests) taken.append(Taken{std::move(request), self.shared});
  return nb::make_tuple(taken, cancelled);
}

}  // namespace

l3_store store_of(std::shared_ptr<Requests> requests) {
  l3_store store = l3_store_init();
  store.context = new std::shared_ptr<Requests>(std::move(requests));
  store.size = [](void* context, const char* key, l3_store_request known) { add(context, key, 0, 0, true, known); };
  store.read = [](void* context, const char* key, uint64_t offset, uint64_t size, l3_store_request known) {
    add(context, key, offset, size, false, known);
  };
  store.cancel = [](void* context, l3_store_request known) {
    RequestQueue* const queue = (*static_cast<std::shared_ptr<Requests>*>(context))->queue();
    if (queue != nullptr) queue->cancel(known);
  };
  store.release = [](void* context) {
    auto* const owned = static_cast<std::shared_ptr<Requests>*>(context);
    if (RequestQueue* const queue = (*owned)->queue()) queue->release();
    delete owned;
  };
  return store;
}

void bind_store(nb::module_& module) {
  nb::class_<Taken>(module, "StoreRequest", nb::is_final())
      .def_prop_ro("number", [](const Taken& self) { return self.request.known.number; })
      .def_prop_ro("key",
                   [](const Taken& self) {
                     const std::string& key = self.request.key;
                     return nb::steal<nb::object>(
                         PyUnicode_DecodeUTF8(key.data(), static_cast<Py_ssize_t>(key.size()), "surrogateescape"));
                   })
      .def_prop_ro("offset", [](const Taken& self) { return self.request.offset; })
      .def_prop_ro("size", [](const Taken& self) { return self.request.size; })
      .def_prop_ro("wants_size", [](const Taken& self) { return self.request.wants_size; })
      .def("finish_size", &Taken::finish_size, "size"_a)
      .def("finish", &Taken::finish, "bytes"_a)
      .def("fail", &Taken::fail, "status"_a, "system_error"_a, "reason"_a);
  nb::class_<StoreRequests>(module, "StoreRequests", nb::is_final())
      .def(
          "__init__",
          [](StoreRequests* self, bool has_event) { new (self) StoreRequests{std::make_shared<Requests>(has_event)}; },
          "has_event"_a)
      .def_prop_ro("event", [](const StoreRequests& self) { return queue_of(self).event(); })
      .def_prop_ro("closed", [](const StoreRequests& self) { return queue_of(self).is_closed(); })
      .def("take", &take)
      .def("drain", &drain)
      .def("close",
           [](const StoreRequests& self) {
             RequestQueue& queue = queue_of(self);
             const nb::gil_scoped_release unlocked;
             queue.close();
           })
      .def("restart", [](const StoreRequests& self) { self.shared->restart(); });
}

}  // namespace l3_python
