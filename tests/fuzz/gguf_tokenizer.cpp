// The input is a GGUF file. The vocabulary in its metadata is tested.
#include "tests/fuzz/round_trip.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  try_tokenizer(folder.write("model.gguf", as_text(data, size)),
                "The cat and the  dog, 12 \xc3\xa9\n");
  return 0;
}
