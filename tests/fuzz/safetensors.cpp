// Any safetensors file must give an Error, or tensors that lie within the file. Written and read
// again, the tensors must be the same.
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

#include <sstream>

#include "base/error.h"
#include "tests/fuzz/fuzz.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  try {
    const SafetensorsFile file(folder.write("model.safetensors", as_text(data, size)));
    std::ostringstream out;
    write_safetensors(out, file.tensors(), file.metadata());
    const SafetensorsFile again(folder.write("again.safetensors", out.str()));
    require(again.tensors().size() == file.tensors().size(), "what is written can be read");
    for (const StoredTensor& tensor : file.tensors()) {
      const StoredTensor* other = again.find(tensor.name);
      require(other != nullptr && other->shape == tensor.shape && other->dtype == tensor.dtype &&
                  std::equal(tensor.bytes.begin(), tensor.bytes.end(), other->bytes.begin(),
                             other->bytes.end()),
              "what is read back is what was written");
    }
  } catch (const Error&) {
  }
  return 0;
}
