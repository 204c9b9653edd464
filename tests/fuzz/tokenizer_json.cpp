// The input is a tokenizer.json, a zero byte, and a text.
#include "tests/fuzz/round_trip.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  const auto [json, text] = two_texts(as_text(data, size), '\0');
  try_tokenizer(folder.write("tokenizer.json", json),
                text.empty() ? "The cat, 12  \xc3\xa9\n" : text);
  return 0;
}
