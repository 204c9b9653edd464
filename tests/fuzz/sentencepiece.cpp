// The input is a tokenizer.model of sentencepiece. It tests the reader of Protocol Buffers, the
// charsmap and both kinds of model. The texts are a fixed one, and the end of the file itself.
#include "tests/fuzz/round_trip.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  const std::string_view input = as_text(data, size);
  const std::filesystem::path file = folder.write("tokenizer.model", input);
  try_tokenizer(file, "The cat, 12  \xc3\xa9 \xef\xbc\xa1 <s>\n");
  try_tokenizer(file, input.substr(size - std::min<std::size_t>(size, 40)));
  return 0;
}
