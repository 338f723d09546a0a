// Tests stores of callers: what they answer arrives, and whatever they do, each read finishes once and in time.
#include "callback_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "loader_testing.h"

namespace {

using namespace loader;
using data_set_testing::Bytes;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A store in memory, whose threads answer.
class Memory {
 public:
  struct Call {
    l3_store_request request{};
    std::string key{};
    uint64_t offset = 0, size = 0;
    bool wants_size = false;
  };
  using Answer = std::function<void(Memory&, const Call&)>;

  ~Memory() { end(); }

  // Answers as it should.
  void answer_well(const Call& call) {
    const auto found = objects.find(call.key);
    if (found == objects.end()) return l3_store_fail(call.request, L3_ERROR_FILE, ENOENT, nullptr);
    const Bytes& bytes = found->second;
    if (call.wants_size) return l3_store_finish(call.request, nullptr, bytes.size());
    if (call.offset > bytes.size()) return l3_store_finish(call.request, bytes.data(), 0);
    l3_store_finish(call.request, bytes.data() + call.offset, std::min(call.size, bytes.size() - call.offset));
  }

  std::map<std::string, Bytes> objects;
  Answer answer = [](Memory& self, const Call& call) { self.answer_well(call); };
  bool answers_at_once = false;
  std::atomic<int> released = 0, cancelled = 0, calls = 0, at_once = 0, most_at_once = 0;

  l3_store callbacks() {
    l3_store store = l3_store_init();
    store.context = this;
    store.size = [](void* context, const char* key, l3_store_request request) {
      static_cast<Memory*>(context)->add({request, key, 0, 0, true});
    };
    store.read = [](void* context, const char* key, uint64_t offset, uint64_t size, l3_store_request request) {
      static_cast<Memory*>(context)->add({request, key, offset, size, false});
    };
    store.cancel = [](void* context, l3_store_request) { ++static_cast<Memory*>(context)->cancelled; };
    store.release = [](void* context) {
      auto& self = *static_cast<Memory*>(context);
      ++self.released;
      self.end();
    };
    return store;
  }

  void start() {
    for (int i = 0; i < 3 && !answers_at_once; ++i) threads_.emplace_back([this] { run(); });
  }
  std::shared_ptr<Store> store(uint32_t timeout_ms = 60000, uint32_t connections = 8) {
    start();
    StoreOptions options;
    options.timeout_ms = timeout_ms;
    options.connections = connections;
    return make_callback_store(CallerStore(callbacks()), "memory", options);
  }

 private:
  void add(Call call) {
    ++calls;
    if (answers_at_once) return answer(*this, call);
    const std::lock_guard lock(mutex_);
    most_at_once = std::max<int>(most_at_once, ++at_once);
    queue_.push_back(std::move(call));
    wake_.notify_one();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Call call = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      --at_once;
      answer(*this, call);
      lock.lock();
    }
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Call> queue_;
  std::vector<std::thread> threads_;
  bool ends_ = false;
};

Bytes counted(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

// Reads in progress on a channel, and how often each finished.
struct Reads {
  Reads(Store& store, size_t count, uint64_t size) : object(store.open("a")), bytes(count * size), reads(count) {
    for (size_t i = 0; i < count; ++i) {
      reads[i].object = object.get();
      reads[i].offset = i * size;
      reads[i].size = size;
      reads[i].to = bytes.data() + i * size;
      reads[i].context = this;
      reads[i].finish = [](Read& read, const StoreFault& fault) {
        Reads& self = *static_cast<Reads*>(read.context);
        const std::lock_guard lock(self.mutex);
        self.faults.push_back(fault);
        self.finished.notify_all();
      };
      pointers.push_back(&reads[i]);
    }
  }
  // Returns whether all reads finished, each once, within a time.
  bool wait(milliseconds time = milliseconds(20000)) {
    std::unique_lock lock(mutex);
    return finished.wait_for(lock, time, [&] { return faults.size() >= reads.size(); }) &&
           faults.size() == reads.size();
  }

  std::unique_ptr<Object> object;
  Bytes bytes;
  std::vector<Read> reads;
  std::vector<Read*> pointers;
  std::mutex mutex;
  std::condition_variable finished;
  std::vector<StoreFault> faults;
};

StoreFault read_one(Store& store, const std::string& key, uint64_t offset, Bytes& to, bool from_end = false,
                    uint64_t* object_size = nullptr) {
  const auto object = store.open(key);
  Read read;
  read.object = object.get();
  read.offset = offset;
  read.size = to.size();
  read.to = to.data();
  read.from_end = from_end;
  StoreFault fault;
  store.read({&read, 1}, {&fault, 1});
  to.resize(static_cast<size_t>(read.size));
  if (object_size != nullptr) *object_size = read.object_size;
  return fault;
}

TEST(CallbackStore, ReadsParts) {
  for (const bool at_once : {false, true}) {
    Memory memory;
    memory.answers_at_once = at_once;
    memory.objects["a"] = counted(1000);
    memory.objects["empty"] = {};
    const auto store = memory.store();
    EXPECT_EQ(store->name(), "memory");
    EXPECT_EQ(store->open("b/c")->name(), "memory/b/c");
    EXPECT_TRUE(store->is_far());
    Bytes part(100);
    EXPECT_EQ(read_one(*store, "a", 300, part).status, L3_OK);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), memory.objects["a"].begin() + 300));
    uint64_t size = 0;
    EXPECT_EQ(read_one(*store, "a", 0, part, true, &size).status, L3_OK);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), memory.objects["a"].end() - 100));
    EXPECT_EQ(size, 1000u);
    Bytes more(2000);
    EXPECT_EQ(read_one(*store, "a", 0, more, true, &size).status, L3_OK);
    EXPECT_EQ(more, memory.objects["a"]);
    Bytes none(10);
    EXPECT_EQ(read_one(*store, "empty", 0, none, true, &size).status, L3_OK);
    EXPECT_EQ(none.size() + size, 0u);
    const StoreFault missing = read_one(*store, "x", 0, part, true);
    EXPECT_EQ(missing.status, L3_ERROR_FILE);
    EXPECT_EQ(missing.system_error, ENOENT);
    EXPECT_EQ(missing.reason, "No such file or directory");
    EXPECT_EQ(store->put({}).status, L3_ERROR_UNSUPPORTED);
  }
}

TEST(CallbackStore, ManyReadsWithinTheLimit) {
  for (const bool at_once : {false, true}) {
    Memory memory;
    memory.answers_at_once = at_once;
    memory.objects["a"] = counted(20000);
    const auto store = memory.store(60000, 5);
    {
      Reads reads(*store, 5000, 4);
      const auto channel = store->make_channel(L3_READING_AUTO);
      channel->submit(reads.pointers);
      ASSERT_TRUE(reads.wait());
      for (const StoreFault& fault : reads.faults) EXPECT_EQ(fault.status, L3_OK);
      EXPECT_EQ(reads.bytes, memory.objects["a"]);
      for (const Read& read : reads.reads) {
        EXPECT_LE(read.times.queued, read.times.sent);
        EXPECT_LE(read.times.sent, read.times.answered);
        EXPECT_LE(read.times.answered, read.times.finished);
      }
    }
    EXPECT_LE(memory.most_at_once, 5);
    EXPECT_EQ(memory.released, 0);
  }
}

// What a store answers, and what becomes of it.
TEST(CallbackStore, Misbehaviour) {
  struct Case {
    const char* name;
    Memory::Answer answer;
    l3_status status;
    int system_error;
  };
  static const Bytes many(4000);
  const Case cases[] = {
      {"twice", [](Memory& self, const Memory::Call& call) { self.answer_well(call), self.answer_well(call); }, L3_OK,
       0},
      {"then an error",
       [](Memory& self, const Memory::Call& call) {
         self.answer_well(call);
         l3_store_fail(call.request, L3_ERROR_FILE, EIO, "too late");
       },
       L3_OK, 0},
      {"requests that do not exist",
       [](Memory& self, const Memory::Call& call) {
         for (uint64_t number = 0; number < 300; ++number) {
           if (number != call.request.number) l3_store_finish({call.request.owner, number + 100000}, many.data(), 10);
         }
         l3_store_finish({nullptr, 1}, many.data(), 10);
         self.answer_well(call);
       },
       L3_OK, 0},
      {"short", [](Memory&, const Memory::Call& call) { l3_store_finish(call.request, many.data(), 9); },
       L3_ERROR_TRUNCATED, 0},
      {"long", [](Memory&, const Memory::Call& call) { l3_store_finish(call.request, many.data(), 11); }, L3_ERROR_FILE,
       EPROTO},
      {"null", [](Memory&, const Memory::Call& call) { l3_store_finish(call.request, nullptr, 10); }, L3_ERROR_FILE,
       EPROTO},
      {"no error", [](Memory&, const Memory::Call& call) { l3_store_fail(call.request, L3_OK, -5, ""); }, L3_ERROR_FILE,
       0},
      {"a status of others",
       [](Memory&, const Memory::Call& call) { l3_store_fail(call.request, L3_ERROR_CORRUPT, EACCES, "no"); },
       L3_ERROR_FILE, EACCES},
      {"never", [](Memory&, const Memory::Call&) {}, L3_ERROR_FILE, ETIMEDOUT},
  };
  for (const bool at_once : {false, true}) {
    for (const Case& one : cases) {
      Memory memory;
      memory.answers_at_once = at_once;
      memory.objects["a"] = counted(200);
      memory.answer = one.answer;
      auto store = memory.store(one.system_error == ETIMEDOUT ? 100 : 60000);
      Reads reads(*store, 20, 10);
      {
        const auto channel = store->make_channel(L3_READING_AUTO);
        channel->submit(reads.pointers);
        ASSERT_TRUE(reads.wait()) << one.name;
      }
      for (const StoreFault& fault : reads.faults) {
        EXPECT_EQ(fault.status, one.status) << one.name;
        EXPECT_EQ(fault.system_error, one.system_error) << one.name;
        EXPECT_EQ(fault.reason.empty(), one.status == L3_OK) << one.name;
      }
      if (one.status == L3_OK) {
        EXPECT_EQ(reads.bytes, memory.objects["a"]) << one.name;
      }
      store.reset();
      EXPECT_EQ(memory.released, 1);
    }
  }
}

TEST(CallbackStore, SizesThatAreNotTrue) {
  const Bytes bytes_of_nothing(10);
  for (const uint64_t size : {uint64_t{999}, uint64_t{1001}, uint64_t{1} << 62, UINT64_MAX}) {
    Memory memory;
    memory.objects["a"] = counted(1000);
    memory.answer = [&](Memory& self, const Memory::Call& call) {
      if (!call.wants_size) return self.answer_well(call);
      l3_store_finish(call.request, nullptr, size);
      l3_store_finish(call.request, nullptr, 10);
      l3_store_finish(call.request, bytes_of_nothing.data(), 10);
    };
    const auto store = memory.store();
    Bytes end(10);
    const StoreFault fault = read_one(*store, "a", 0, end, true);
    EXPECT_EQ(fault.status, size == 999 ? L3_OK : size == UINT64_MAX ? L3_ERROR_FILE : L3_ERROR_TRUNCATED);
    if (size == 999) {
      EXPECT_TRUE(std::equal(end.begin(), end.end(), memory.objects["a"].begin() + 989));
    }
  }
}

TEST(CallbackStore, CancelFinishesReadsOfItsChannelOnly) {
  Memory memory;
  memory.objects["a"] = counted(400);
  std::mutex mutex;
  std::vector<Memory::Call> kept;
  memory.answer = [&](Memory&, const Memory::Call& call) {
    const std::lock_guard lock(mutex);
    kept.push_back(call);
  };
  const auto store = memory.store(60000, 60);
  Reads first(*store, 40, 10), second(*store, 40, 10);
  first.reads[3].from_end = first.reads[39].from_end = true;
  const auto one = store->make_channel(L3_READING_AUTO), other = store->make_channel(L3_READING_AUTO);
  one->submit(first.pointers);
  other->submit(second.pointers);
  one->cancel();
  ASSERT_TRUE(first.wait());
  for (const StoreFault& fault : first.faults) EXPECT_EQ(fault.system_error, ECANCELED);
  EXPECT_EQ(memory.cancelled, 40);
  while (!second.wait(milliseconds(1))) {  // answers the rest, and also what was cancelled
    const std::lock_guard lock(mutex);
    for (const Memory::Call& call : kept) memory.answer_well(call);
    kept.clear();
  }
  for (const StoreFault& fault : second.faults) EXPECT_EQ(fault.status, L3_OK);
  EXPECT_EQ(second.bytes, memory.objects["a"]);
}

TEST(CallbackStore, ALateAnswerDoesNotReachOtherReads) {
  Memory memory;
  memory.objects["a"] = counted(400);
  memory.answer = [&](Memory& self, const Memory::Call& call) {
    if (call.offset % 20 == 0) std::this_thread::sleep_for(milliseconds(30));
    self.answer_well(call);
  };
  const auto store = memory.store(15, 4);
  for (int round = 0; round < 5; ++round) {
    Reads reads(*store, 40, 10);
    const auto channel = store->make_channel(L3_READING_AUTO);
    channel->submit(reads.pointers);
    ASSERT_TRUE(reads.wait());
    for (const StoreFault& fault : reads.faults) {
      EXPECT_TRUE(!fault || fault.system_error == ETIMEDOUT) << fault.reason;
    }
  }
}

TEST(CallbackStore, Reasons) {
  EXPECT_EQ(cleaned_reason("plain: 403"), "plain: 403");
  EXPECT_EQ(cleaned_reason("two\nlines\tand \x7f"), "two lines and  ");
  EXPECT_EQ(cleaned_reason("url='https://me:pw@host/a?sig=abc' said no, s3://k@b/c?x=1"),
            "url='https://host/a' said no, s3://b/c");
  EXPECT_EQ(cleaned_reason("://u:p@h"), "://h");
  EXPECT_EQ(cleaned_reason("https://u:p@h/http://x?token=1"), "https://h/http://x");
  EXPECT_EQ(cleaned_reason(std::string(1000, 'x')).size(), 200u);
  EXPECT_EQ(cleaned_reason(std::string(196, 'x') + "\xC3\xA9\xC3\xA9\xC3\xA9"), std::string(196, 'x') + "...");
}

// Data sets and loaders on a store of the caller.
class StoresOfCallers : public loader_testing::LoaderTest {
 protected:
  void fill(Memory& memory) const {
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      std::ifstream stream(file.path(), std::ios::binary);
      memory.objects[file.path().filename()] = Bytes(std::istreambuf_iterator<char>(stream), {});
    }
  }
  static l3_data_error fail_to_open(const l3_store* store, const char* name, const l3_data_options* options = nullptr) {
    l3_data_set* opened = nullptr;
    l3_data_error error{};
    EXPECT_EQ(l3_data_open_store(store, name, options, &opened, &error), error.status);
    EXPECT_NE(error.status, L3_OK);
    EXPECT_EQ(opened, nullptr);
    return error;
  }
};

TEST_F(StoresOfCallers, TheSameAsAFolder) {
  draw_set({{40, 24}, {300, 400}, {500, 260}}, {L3_COLOUR_RGB, 8}, 31, 5);
  for (const bool at_once : {false, true}) {
    Memory memory;
    memory.answers_at_once = at_once;
    fill(memory);
    memory.start();
    {
      const auto opened = l3::DataSet::open(memory.callbacks(), "memory://me:pw@there");
      ASSERT_TRUE(opened) << l3::message(opened.error());
      EXPECT_EQ(l3_data_shard_name(opened->get(), 0), std::string("memory://there/shard-0.l3s"));
      ASSERT_EQ(opened->count(), set_->count());
      for (uint64_t i = 0; i < opened->count(); ++i) EXPECT_EQ(*opened->read(i), *set_->read(i));
      for (uint64_t i = 0; i < opened->info().shards; ++i) {
        EXPECT_EQ(l3_data_verify_shard(opened->get(), i, nullptr), L3_OK);
      }
      l3_loader_options options = options_of(4);
      options.order = L3_ORDER_SHUFFLED;
      options.crop = L3_CROP_RANDOM;
      options.crop_width = options.crop_height = 20;
      loader_testing::Loader loader(*opened->get(), options);
      ASSERT_EQ(l3_loader_start(loader.get(), 2, 0, nullptr), L3_OK);
      std::vector<std::vector<loader_testing::Unit>> batches;
      while (const loader_testing::Batch batch = loader.next()) {
        batches.emplace_back();
        for (uint32_t i = 0; i < batch.info().units; ++i) {
          batches.back().push_back(loader_testing::unit_of(batch.info(), i));
        }
      }
      EXPECT_EQ(batches, batches_of(options, 2, 0));
      EXPECT_EQ(memory.released, 0);
    }
    EXPECT_EQ(memory.released, 1);
  }
}

// Closing a loader does not wait for a store that never answers.
TEST_F(StoresOfCallers, ClosingALoaderCancels) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 60);
  Memory memory;
  fill(memory);
  memory.start();
  std::atomic<bool> is_silent = false;
  memory.answer = [&](Memory& self, const Memory::Call& call) {
    if (!is_silent) self.answer_well(call);
  };
  const auto opened = l3::DataSet::open(memory.callbacks(), "memory");
  ASSERT_TRUE(opened) << l3::message(opened.error());
  is_silent = true;
  const auto begin = Clock::now();
  {
    loader_testing::Loader loader(*opened->get(), options_of(4));
    ASSERT_EQ(l3_loader_start(loader.get(), 0, 0, nullptr), L3_OK);
    l3_next next = L3_NEXT_END;
    l3_batch* batch = nullptr;
    EXPECT_EQ(l3_loader_next(loader.get(), 100, &next, &batch, nullptr, nullptr), L3_OK);
    EXPECT_EQ(next, L3_NEXT_WAITING);
  }
  EXPECT_LT(Clock::now() - begin, milliseconds(10000));
  EXPECT_GT(memory.cancelled, 0);
}

TEST_F(StoresOfCallers, FailuresOfOpening) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 4);
  Memory memory;
  memory.answers_at_once = true;
  l3_store store = memory.callbacks();
  EXPECT_EQ(fail_to_open(nullptr, "memory").status, L3_ERROR_ARGUMENT);
  store.struct_size = 0;
  EXPECT_EQ(fail_to_open(&store, "memory").status, L3_ERROR_ARGUMENT);
  EXPECT_EQ(memory.released, 0);
  store = memory.callbacks();
  EXPECT_EQ(fail_to_open(&store, nullptr).status, L3_ERROR_ARGUMENT);
  store.read = nullptr;
  EXPECT_EQ(fail_to_open(&store, "memory").status, L3_ERROR_ARGUMENT);
  store = memory.callbacks();
  const l3_data_options no_size{};
  EXPECT_EQ(fail_to_open(&store, "memory", &no_size).status, L3_ERROR_ARGUMENT);
  EXPECT_EQ(memory.released, 3);

  const l3_data_error missing = fail_to_open(&store, "memory");
  EXPECT_EQ(missing.system_error, ENOENT);
  EXPECT_EQ(std::string(missing.file), "memory");
  fill(memory);
  memory.answer = [](Memory& self, const Memory::Call& call) {
    if (call.key == kIndexFile) return self.answer_well(call);
    l3_store_fail(call.request, L3_ERROR_FILE, EACCES, "GET http://u:p@h/a?key=1: no");
  };
  const l3_data_error denied = fail_to_open(&store, "memory");
  EXPECT_EQ(denied.system_error, EACCES);
  EXPECT_EQ(std::string(denied.reason), "GET http://h/a no");
  memory.answer = [](Memory&, const Memory::Call&) {};
  l3_data_options options = l3_data_options_init();
  options.timeout_ms = 50;
  EXPECT_EQ(fail_to_open(&store, "memory", &options).system_error, ETIMEDOUT);
  EXPECT_EQ(memory.released, 6);
}

// A child has requests of its own, and leaves those of its parent alone.
TEST_F(StoresOfCallers, Fork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not support threads after a fork";
#endif
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 4);
  Memory memory;
  memory.answers_at_once = true;
  fill(memory);
  auto opened = l3::DataSet::open(memory.callbacks(), "memory");
  ASSERT_TRUE(opened);
  for (const bool reads : {false, true}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool is_right = true;
      {
        const l3::DataSet own = std::move(*opened);
        if (reads) is_right = *own.read(1) == *set_->read(1);
      }
      _exit(is_right && memory.released == (reads ? 1 : 0) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(memory.released, 0);
  EXPECT_EQ(*opened->read(1), *set_->read(1));
}

}  // namespace
