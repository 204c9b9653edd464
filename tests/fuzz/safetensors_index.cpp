// The input is a model.safetensors.index.json beside two valid shards. It must give an Error, or
// the tensors of these two files.
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model_source.h"
#include "tests/fuzz/fuzz.h"

using namespace stagecraft;

namespace {

const InputFolder& folder_with_shards() {
  static const InputFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(TEST_DATA "/models/llama-sharded")) {
    if (entry.path().extension() == ".safetensors") {
      std::filesystem::copy_file(entry.path(), folder.path() / entry.path().filename());
    }
  }
  return folder;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder& folder = folder_with_shards();
  folder.write("model.safetensors.index.json", as_text(data, size));
  try {
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    for (const StoredTensor* tensor : checkpoint.tensors()) {
      require(checkpoint.find(tensor->name) == tensor, "a tensor is found by its name");
    }
  } catch (const Error&) {
  }
  return 0;
}
