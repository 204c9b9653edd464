// The input is a model of FastLLM: pairs, vocabulary and weights.
#include "tests/fuzz/open_model.h"
#include "tests/fuzz/round_trip.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  const std::filesystem::path path = folder.write("model.flm", as_text(data, size));
  try_model(path);
  try_tokenizer(path, "The cat, 12  \xc3\xa9\n");
  return 0;
}
