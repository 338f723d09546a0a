// A link with delay and faults, for tests and measurements on one machine. It passes TCP connections on to a server.
//
// Usage: slow_link --listen PORT --to ADDRESS:PORT [OPTION VALUE]...
//
//   --listen PORT         listens on 127.0.0.1; 0: any free port. The first line of output is {"port": PORT}
//   --delay MS            a round trip takes MS longer: half of it each way. Throughput is not limited
//   --connect-delay 1     a new connection costs one round trip too, as a handshake of TCP does
//   --rate BYTES          bytes per second each way, of all connections together
//   --window BYTES        bytes on the way in one direction of one connection (default 4 MiB)
//   --lose P              each chunk stalls with this probability for 200 ms and MS, as if a TCP segment was lost
//   --cut-every N         cuts the connection in every Nth answer, after --cut-after BYTES of it (default 1000). Cuts
//                         close and reset in turn
//   --corrupt-every N     flips a bit in the body of every Nth answer
//   --status-every N      answers every Nth HTTP request with --status CODE (default 503) instead of passing it on, and
//                         with the header Retry-After if --retry-after S is given
//   --seed N              of all that is drawn
//
// An answer is what the server sends after something from the client, until the client sends again. Requests of HTTP
// must not be pipelined.
//
// A line on standard input with options changes them. Any line, or none but a newline, prints the counters as a line of
// JSON. So does SIGTERM, which ends the link. It also ends when its standard input does, so it cannot outlive its test.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <sstream>

#include "slow_link_relay.h"

namespace {

using slow_link::Counters;
using slow_link::Link;

struct Ends {
  uint16_t listen = 0;
  std::string to;
};

std::optional<double> number(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value) || value < 0 || value > 1e15) return std::nullopt;
  return value;
}

// Sets an option. Returns false if there is no such option or its value is wrong.
bool set(Link& link, const std::string& name, const std::string& word) {
  slow_link::Options& options = link.options;
  const std::optional<double> value = number(word);
  if (!value) return false;
  const auto whole = static_cast<uint64_t>(*value);
  const std::map<std::string, uint64_t*> numbers = {{"--rate", &options.rate},
                                                    {"--window", &options.window},
                                                    {"--cut-every", &options.cut_every},
                                                    {"--cut-after", &options.cut_after},
                                                    {"--status", &options.status},
                                                    {"--status-every", &options.status_every},
                                                    {"--seed", &options.seed},
                                                    {"--retry-after", &options.retry_after},
                                                    {"--corrupt-every", &options.corrupt_every}};
  if (name == "--delay") {
    options.delay = static_cast<uint64_t>(*value * static_cast<double>(slow_link::kMillisecond));
  } else if (name == "--connect-delay") {
    options.connect_delay = whole != 0;
  } else if (name == "--lose") {
    options.lose = *value;
  } else if (const auto found = numbers.find(name); found != numbers.end()) {
    *found->second = whole;
    if (name == "--seed") link.random.seed(whole);
  } else {
    return false;
  }
  return true;
}

void print(const Counters& counters) {
  const std::pair<const char*, uint64_t> all[] = {{"connections", counters.connections},
                                                  {"open", counters.open},
                                                  {"most_open", counters.most_open},
                                                  {"bytes_up", counters.bytes_up},
                                                  {"bytes_down", counters.bytes_down},
                                                  {"requests", counters.requests},
                                                  {"answers", counters.answers},
                                                  {"cuts", counters.cuts},
                                                  {"corrupted", counters.corrupted},
                                                  {"statuses", counters.statuses},
                                                  {"stalls", counters.stalls}};
  const char* before = "{";
  for (const auto& [name, count] : all) {
    std::printf("%s\"%s\": %llu", before, name, static_cast<unsigned long long>(count));
    before = ", ";
  }
  std::printf("}\n");
  std::fflush(stdout);
}

[[noreturn]] void die(const std::string& reason) {
  std::fprintf(stderr, "slow_link: %s\n", reason.c_str());
  std::exit(1);
}

Ends parse(Link& link, int count, char** words) {
  Ends ends;
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i];
    const std::string value = i + 1 == count ? "" : words[i + 1];
    if (name == "--to") {
      ends.to = value;
    } else if (name == "--listen" && number(value).value_or(65536) < 65536) {
      ends.listen = static_cast<uint16_t>(*number(value));
    } else if (!set(link, name, value)) {
      die(std::string(name).append(": there is no such option, or its value is wrong: ").append(value));
    }
  }
  return ends;
}

sockaddr_in address_of(const std::string& to) {
  const size_t colon = to.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const std::optional<double> port = colon == std::string::npos ? std::nullopt : number(to.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535 || inet_pton(AF_INET, to.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    die("--to: must be an IPv4 address and a port, but is '" + to + "'");
  }
  address.sin_port = htons(static_cast<uint16_t>(*port));
  return address;
}

int listen_on(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int one = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener, 1024) != 0 || getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    die("cannot listen on port " + std::to_string(port));
  }
  std::printf("{\"port\": %u}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

// Reads what is on standard input, and obeys whole lines. Returns false at its end.
bool obey_input(Link& link, std::string& line) {
  char text[4096];
  const ssize_t got = read(STDIN_FILENO, text, sizeof text);
  if (got <= 0) return got < 0 && (errno == EINTR || errno == EAGAIN);
  line.append(text, static_cast<size_t>(got));
  for (size_t end; (end = line.find('\n')) != std::string::npos; line.erase(0, end + 1)) {
    std::istringstream words(line.substr(0, end));
    std::string name, value;
    while (words >> name) {
      value.clear();
      words >> value;
      if (!set(link, name, value)) std::fprintf(stderr, "slow_link: %s %s: wrong\n", name.c_str(), value.c_str());
    }
    print(link.counters);
  }
  return true;
}

// Two sockets for each connection.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** words) try {
  Link first;
  const Ends ends = parse(first, count, words);
  const sockaddr_in server = address_of(ends.to);
  allow_many_files();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int ended = signalfd(-1, &signals, SFD_CLOEXEC);
  slow_link::Relay relay(listen_on(ends.listen), server);
  relay.link() = std::move(first);
  if (!relay.watch(ended)) die("cannot wait for signals");
  relay.watch(STDIN_FILENO);  // fails for /dev/null: then there is no control
  std::string line;
  while (relay.run() == STDIN_FILENO && obey_input(relay.link(), line)) {
  }
  print(relay.link().counters);
} catch (const std::exception& error) {
  die(error.what());
}
