// Each byte of the input is one token, as a model may generate them. The pieces that a stream shows
// must be valid UTF-8, and together they must equal the text decoded at once.
#include <array>

#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "text/pipeline/byte_level.h"
#include "text/stream_decoder.h"

using namespace stagecraft;

namespace {

struct Bytes {
  Tokenizer tokenizer = Tokenizer::open(TEST_DATA "/tokenizers/gpt2");
  std::array<TokenId, 256> ids;

  Bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      std::string spelt;
      const char c = static_cast<char>(byte);
      append_byte_level(spelt, {&c, 1});
      ids[static_cast<std::size_t>(byte)] = tokenizer.id_of(spelt).value();
    }
  }
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes bytes;
  const std::string whole = utf8_with_replacements(as_text(data, size));
  require(utf8_error_offset(whole) == std::string_view::npos, "replacements leave UTF-8");
  StreamDecoder stream(bytes.tokenizer);
  std::string shown;
  for (std::size_t i = 0; i < size; ++i) {
    const std::string piece = stream.push(bytes.ids[data[i]]);
    require(utf8_error_offset(piece) == std::string_view::npos,
            "what is shown is whole characters");
    shown += piece;
  }
  shown += stream.finish();
  require(shown == whole, "a stream shows what the whole text shows");
  return 0;
}
