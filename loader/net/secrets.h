// Keeps secrets out of texts that another side wrote: a hostile server may repeat what it was told.
#pragma once

#include <string>
#include <vector>

namespace loader::net {

class Secrets {
 public:
  void add(const std::string& secret) {
    if (!secret.empty()) secrets_.push_back(secret);
  }
  // A text with a secret in it is dropped as a whole.
  void remove_from(std::string& text) const {
    for (const std::string& secret : secrets_) {
      if (text.find(secret) != std::string::npos) text = "(hidden, because it repeats a secret)";
    }
  }

 private:
  std::vector<std::string> secrets_;
};

}  // namespace loader::net
