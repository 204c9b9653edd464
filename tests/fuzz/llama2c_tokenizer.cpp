// The input is a tokenizer.bin of llama2.c.
#include "tests/fuzz/round_trip.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  try_tokenizer(folder.write("tokenizer.bin", as_text(data, size)), "The cat, 12  \xc3\xa9\n");
  return 0;
}
