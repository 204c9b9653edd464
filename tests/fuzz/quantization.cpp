// A folder whose matrices are stored in parts. The input is its config.json, a zero byte, and its
// model.safetensors. The folder must give an Error, or weights that can be read.
#include "tests/fuzz/open_model.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  const auto [config, weights] = two_texts(as_text(data, size), '\0');
  folder.write("config.json", config);
  folder.write("model.safetensors", weights);
  try_model(folder.path());
  return 0;
}
