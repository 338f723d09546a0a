#include "share_socket.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

namespace loader {
namespace {

// All open descriptors, for forked children. They live as long as the process.
struct OpenDescriptors {
  std::mutex mutex;
  std::vector<int> numbers;
};

OpenDescriptors& open_descriptors() {
  static OpenDescriptors* const all = [] {
    auto* const made = new OpenDescriptors;
    pthread_atfork([] { open_descriptors().mutex.lock(); }, [] { open_descriptors().mutex.unlock(); },
                   [] {
                     OpenDescriptors& mine = open_descriptors();
                     for (const int number : mine.numbers) close(number);
                     mine.numbers.clear();
                     mine.mutex.unlock();
                   });
    return made;
  }();
  return *all;
}

// The address of a name. Its first byte is zero: such a name is in no folder, and ends with its socket.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const size_t size = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

int make_socket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

}  // namespace

Descriptor::Descriptor(int number) : number_(number) {
  if (number < 0) return;
  OpenDescriptors& all = open_descriptors();
  const std::lock_guard lock(all.mutex);
  all.numbers.push_back(number);
}

void Descriptor::reset() {
  if (number_ < 0) return;
  OpenDescriptors& all = open_descriptors();
  const std::lock_guard lock(all.mutex);
  // A forked child has closed it already, and the number may be another file's now.
  if (std::erase(all.numbers, number_) > 0) close(number_);
  number_ = -1;
}

std::string socket_name(const std::string& share, uint32_t rank, uint32_t world_size) {
  return "l3/" + std::to_string(geteuid()) + "/" + std::to_string(rank) + "/" + std::to_string(world_size) + "/" +
         share;
}

Descriptor connect_to(const std::string& name, bool& is_free, bool& is_foreign) {
  is_free = is_foreign = false;
  Descriptor made(make_socket());
  sockaddr_un address;
  const socklen_t size = address_of(name, address);
  if (!made) return {};
  if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    is_free = errno == ECONNREFUSED;
    return {};
  }
  is_foreign = !is_own_user(made.get());
  return is_foreign ? Descriptor() : std::move(made);
}

Descriptor listen_at(const std::string& name) {
  Descriptor made(make_socket());
  sockaddr_un address;
  const socklen_t size = address_of(name, address);
  if (!made || bind(made.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return {};
  return listen(made.get(), SOMAXCONN) == 0 ? std::move(made) : Descriptor();
}

Descriptor accept_at(const Descriptor& listening) {
  Descriptor made(accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  return made && is_own_user(made.get()) ? std::move(made) : Descriptor();
}

bool send_message(const Descriptor& socket, const void* message, size_t size, const Descriptor* passed) {
  iovec part{const_cast<void*>(message), size};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  if (passed != nullptr) {
    head.msg_control = room;
    head.msg_controllen = sizeof room;
    cmsghdr* const control = CMSG_FIRSTHDR(&head);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = passed->get();
    std::memcpy(CMSG_DATA(control), &number, sizeof number);
  }
  return sendmsg(socket.get(), &head, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

Received receive_message(const Descriptor& socket, Greeting& message, size_t& size, Descriptor* passed) {
  iovec part{&message, sizeof message};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  if (passed != nullptr) {  // otherwise the kernel closes files that come with it
    head.msg_control = room;
    head.msg_controllen = sizeof room;
  }
  const ssize_t got = recvmsg(socket.get(), &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::end;
  if (passed != nullptr) {
    for (cmsghdr* control = CMSG_FIRSTHDR(&head); control != nullptr; control = CMSG_NXTHDR(&head, control)) {
      if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
      if (control->cmsg_len != CMSG_LEN(sizeof(int))) return Received::end;
      int number = -1;
      std::memcpy(&number, CMSG_DATA(control), sizeof number);
      *passed = Descriptor(number);
    }
  }
  if (got == 0 || (head.msg_flags & MSG_TRUNC) != 0) return Received::end;
  size = static_cast<size_t>(got);
  return Received::message;
}

Wake::Wake() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Wake::ring() const {
  const uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof one);
}

void Wake::quiet() const {
  uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof count);
}

uint64_t AwakeClock::tick() {
  constexpr uint64_t kLongest = 500;  // both sides look at the clock more often
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  const auto time = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since_boot).count());
  if (last_ != 0) now_ += std::min(time - last_, kLongest);
  last_ = time;
  return now_;
}

NoSignals::NoSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

NoSignals::~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace loader
