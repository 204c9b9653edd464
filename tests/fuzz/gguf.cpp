// Any GGUF file must give an Error, or a config and weights that lie within the file. Every
// question about its metadata must give a value or an Error.
#include "formats/gguf/file.h"

#include "tests/fuzz/open_model.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  const std::filesystem::path path = folder.write("model.gguf", as_text(data, size));
  try_to([&] {
    const GgufFile file(path);
    const GgufMetadata& metadata = file.metadata();
    for (const std::string_view key : metadata.keys()) {
      metadata.is_neutral(key);
      try_to([&] { metadata.size(key, 0, SIZE_MAX); });
      try_to([&] { metadata.number(key); });
      try_to([&] { metadata.flag_or(key, false); });
      try_to([&] { metadata.text(key); });
      try_to([&] { metadata.texts(key); });
      try_to([&] { metadata.integers(key); });
      try_to([&] { metadata.numbers(key); });
    }
  });
  try_model(path);
  return 0;
}
