// JSON texts must be read in linear time. A piece of the input is repeated up to a megabyte, and no
// reader may take longer than the limit.
#include "base/json.h"

#include <ctime>

#include "checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace stagecraft;

namespace {

constexpr std::size_t kGrown = std::size_t{1} << 20;
// Processor time. A linear reader needs at most 0.5 s on a busy machine. A reader that visits all
// siblings of each member needs 15 s.
constexpr double kMostSeconds = 6.0;

// An input is "head|piece|tail". A '#' in the piece is replaced by the number of the repetition.
std::string grown(std::string_view input) {
  const auto [head, rest] = two_texts(input, '|');
  const auto [piece, tail] = two_texts(rest, '|');
  std::string text = head;
  for (std::size_t n = 0; !piece.empty() && text.size() < kGrown; ++n) {
    for (const char letter : piece) {
      if (letter == '#') {
        text += std::to_string(n);
      } else {
        text += letter;
      }
    }
  }
  return text + tail;
}

template <class Read>
void in_time(const char* promise, Read read) {
  const std::clock_t start = std::clock();  // processor time: other programs may be running
  try {
    read();
  } catch (const Error&) {
  }
  require(static_cast<double>(std::clock() - start) < kMostSeconds * CLOCKS_PER_SEC, promise);
}

// Looks up every member in its object, as a reader of a file does.
void look_up(JsonNode node) {
  if (node.is_array()) {
    for (const JsonNode element : node.elements()) look_up(element);
  } else if (node.is_object()) {
    for (const JsonNode member : node.members()) {
      node.find(member.key());
      look_up(member);
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  const std::string text = grown(as_text(data, size));
  in_time("Json is linear", [&] { look_up(Json(text, "input").root()); });
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(text.size() >> (8 * i) & 0xff);
  const auto path = folder.write("grown.safetensors", file + text);
  in_time("SafetensorsFile is linear", [&] { SafetensorsFile{path}; });
  return 0;
}
