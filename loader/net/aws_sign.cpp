#include "aws_sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <vector>

#include "base/hex.h"

namespace loader::net {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256", kService = "s3", kLast = "aws4_request";

using Digest = std::array<uint8_t, 32>;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Digest hmac(std::span<const uint8_t> key, std::string_view text) {
  Digest digest{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text).data(), text.size(), digest.data(),
           &size) == nullptr) {
    throw std::bad_alloc();
  }
  return digest;
}

// Parameters by name, each with an equals sign.
std::string canonical_query(std::string_view query) {
  std::vector<std::string> parameters;
  while (!query.empty()) {
    std::string parameter(take_until(query, '&'));
    if (parameter.find('=') == std::string::npos) parameter += '=';
    parameters.push_back(std::move(parameter));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string text;
  for (const std::string& parameter : parameters) text += (text.empty() ? "" : "&") + parameter;
  return text;
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  auto* const context = static_cast<EVP_MD_CTX*>(context_);
  if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) {
    EVP_MD_CTX_free(context);
    throw std::bad_alloc();
  }
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

void Sha256::add(std::span<const uint8_t> bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size());
}

std::string Sha256::hexadecimal() {
  Digest digest{};
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest.data(), nullptr);
  return base::hexadecimal(digest);
}

std::string sha256(std::string_view text) {
  Sha256 sum;
  sum.add(bytes_of(text));
  return sum.hexadecimal();
}

void sign(Request& request, const AwsKeys& keys, const std::string& region, time_t now) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y%m%dT%H%M%SZ", &parts);
  const std::string moment = time.data(), day = moment.substr(0, 8);

  if (request.body_hash.empty()) request.body_hash = sha256("");
  request.headers.push_back("x-amz-date: " + moment);
  request.headers.push_back("x-amz-content-sha256: " + request.body_hash);
  if (!keys.token.empty()) request.headers.push_back("x-amz-security-token: " + keys.token);

  std::map<std::string, std::string> headers{{"host", std::string(request.target.host())}};
  for (const std::string& line : request.headers) {
    const size_t colon = line.find(':');
    headers[lower(std::string_view(line).substr(0, colon))] = line.substr(line.find_first_not_of(' ', colon + 1));
  }
  std::string canonical =
      request.method + "\n" + request.target.path + "\n" + canonical_query(request.target.query) + "\n";
  std::string names;
  for (const auto& [name, value] : headers) {
    canonical += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  canonical += "\n" + names + "\n" + request.body_hash;

  const std::string scope = day + "/" + region + "/" + std::string(kService) + "/" + std::string(kLast);
  const std::string text = std::string(kAlgorithm) + "\n" + moment + "\n" + scope + "\n" + sha256(canonical);
  Digest key = hmac(bytes_of("AWS4" + keys.secret), day);
  for (const std::string_view step : {std::string_view(region), kService, kLast}) key = hmac(key, step);
  request.headers.push_back("Authorization: " + std::string(kAlgorithm) + " Credential=" + keys.id + "/" + scope +
                            ",SignedHeaders=" + names + ",Signature=" + base::hexadecimal(hmac(key, text)));
}

}  // namespace loader::net
