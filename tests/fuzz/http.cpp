// The bytes of a connection must give requests or an HttpError, the same for every way to cut the
// bytes into pieces. The parser must not keep more bytes than the limits allow. The first byte of
// the input gives the length of the pieces.
#include "serve/http_parser.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

using namespace stagecraft;

namespace {

constexpr HttpLimits kLimits = {.head_bytes = 1000, .headers = 20, .body_bytes = 500};

std::string outcome(std::string_view text, std::size_t piece) {
  HttpParser parser(kLimits);
  std::string said;
  try {
    while (!text.empty()) {
      const std::string_view bytes = text.substr(0, std::min(piece, text.size()));
      text.remove_prefix(bytes.size());
      for (auto request = parser.push(bytes); request; request = parser.push({})) {
        require(request->body.size() <= kLimits.body_bytes, "a body has no more than its limit");
        require(request->headers.size() <= kLimits.headers, "headers are no more than their limit");
        require(request->path.starts_with('/'), "a path begins with a slash");
        for (const auto& [name, value] : request->headers) said += name + value;
        said += request->method + request->path + request->body;
      }
      const bool small = parser.waiting_bytes() <= kLimits.head_bytes;
      require(small, "what is kept of a head has no more than its limit");
    }
  } catch (const HttpError& error) {
    require(error.status() >= 400 && error.status() < 600, "an error has a status");
    return said + std::to_string(error.status());
  }
  return said;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = as_text(data + 1, size - 1);
  require(outcome(text, text.size()) == outcome(text, std::size_t{1} + data[0] % 64),
          "the same however it is cut");
  return 0;
}
