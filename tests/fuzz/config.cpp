// Any config.json must give a consistent Config, a plan with steps, or an Error.
#include "model/config.h"

#include "base/error.h"
#include "model/architectures/architectures.h"
#include "model/family.h"
#include "tests/fuzz/fuzz.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Json json = parse_json_object(std::string(as_text(data, size)), "config.json");
    const ConfigFields fields(json, "config.json");
    if (!is_llama_family(fields)) {
      require(!architecture_of(fields).plan(fields).steps.empty(), "a plan has steps");
      return 0;
    }
    const Config config = parse_config(std::string(as_text(data, size)), "config.json");
    require(config.n_heads > 0 && config.n_kv_heads > 0 && config.n_heads % config.n_kv_heads == 0,
            "heads share keys evenly");
    require(config.head_dim > 0 && config.head_dim % 2 == 0, "RoPE rotates pairs");
    require(config.windows.size() == config.n_layers, "a window for each layer");
  } catch (const Error&) {
  }
  return 0;
}
