// The input is a llama2.c checkpoint of any version.
#include "tests/fuzz/open_model.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  try_model(folder.write("model.bin", as_text(data, size)));
  return 0;
}
