// Configs and files of the architectures beside Llama's family: what is refused, and what their
// files may hold in another way.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "model/description.h"
#include "tests/support/engines.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// What is said of a tiny model's config.json with one field changed.
std::string refusal(const std::string& model, const std::string& key, const Json& value) {
  const TemporaryFolder folder;
  Json config = parse_json(text_of(fs::path(TEST_DATA "/models") / model / "config.json"), "");
  config[key] = value;
  std::ofstream(folder.path() / "config.json") << config;
  try {
    describe_model(folder.path());
  } catch (const Error& error) {
    const std::string what = error.what(), file = "config.json: ";
    const std::size_t at = what.find(file);
    return at == std::string::npos ? what : what.substr(at + file.size());
  }
  return "not refused";
}

TEST(Architectures, RefuseByNameWhatWouldChangeTheResult) {
  struct Row {
    std::string model, key;
    Json value;
    std::string expected;
  };
  const Row rows[] = {
      {"gpt2-tied", "add_cross_attention", true,
       "'add_cross_attention': expected false, found true"},
      {"gpt2-tied", "activation_function", "relu",
       "'activation_function': expected gelu, gelu_new, gelu_pytorch_tanh or silu, found 'relu'"},
      {"gpt2-tied", "hidden_size", 16,
       "'hidden_size': expected GPT-2's own names ('n_embd', ...), found 16"},
      {"gpt2-tied", "n_head", 3, "'n_embd': expected a multiple of 'n_head' 3, found 16"},
      {"gpt2-tied", "layer_norm_epsilon", -1.0, ""},
      {"gpt-neox-parallel", "rope_theta", 500.0,
       "'rope_theta': expected 'rotary_emb_base' instead, found 500.0"},
      {"gpt-neox-parallel", "rotary_pct", 0.125,
       "'rotary_pct': expected an even number of columns of a head of 8, found 1"},
      {"gpt-neox-parallel", "partial_rotary_factor", 0.5,
       "'partial_rotary_factor': 0.5 is not supported"},
      {"gpt-neox-parallel", "num_key_value_heads", 1,
       "'num_key_value_heads': expected none (heads of hidden_size / num_attention_heads), found "
       "1"},
      {"phi-gqa2", "qk_layernorm", true, "'qk_layernorm': true is not supported"},
      {"phi-gqa2", "hidden_act", "quick_gelu",
       "'hidden_act': expected gelu, gelu_new, gelu_pytorch_tanh or silu, found 'quick_gelu'"},
      {"phi-gqa2", "rope_scaling", Json{{"type", "linear"}, {"factor", 2.0}},
       "rope type: expected default, found linear"},
      {"phi-gqa2", "rope_scaling", Json{{"type", "default"}, {"partial_rotary_factor", 0.0}},
       "'partial_rotary_factor': expected an even number of columns of a head of 8, found 0"},
      {"stablelm-biases", "qk_layernorm", true, "'qk_layernorm': true is not supported"},
      {"stablelm-biases", "hidden_act", "gelu",
       "'hidden_act': expected 'silu' or 'swish', found 'gelu'"},
      {"starcoder2-window4", "norm_type", "rms_norm",
       "'norm_type': expected 'layer_norm', found 'rms_norm'"},
      {"starcoder2-window4", "mlp_type", "gated", "'mlp_type': expected 'default', found 'gated'"},
  };
  for (const Row& row : rows) {
    const std::string got = refusal(row.model, row.key, row.value);
    if (row.expected.empty()) {
      EXPECT_NE(got.find("'" + row.key + "'"), std::string::npos) << row.model << ": " << got;
    } else {
      EXPECT_EQ(got, row.expected) << row.model << ", " << row.key;
    }
  }
}

// The first GPT-2 files have shorter names, and hold the causal mask of each layer.
TEST(Architectures, ReadGpt2FilesWithShortNamesAndMasks) {
  const fs::path model = TEST_DATA "/models/gpt2-tied";
  const std::string file = text_of(model / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  Json header = parse_json(file.substr(8, length), "header"), shorter = Json::object();
  for (const auto& [name, tensor] : header.items()) {
    const std::string prefix = "transformer.";
    shorter[name.starts_with(prefix) ? name.substr(prefix.size()) : name] = tensor;
  }
  const std::size_t data = file.size() - 8 - length;
  const auto with_extra = [&](const std::string& name) {
    Json changed = shorter;
    changed[name] = {{"dtype", "F32"}, {"shape", {1, 1, 1, 1}}, {"data_offsets", {data, data + 4}}};
    std::string text = changed.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t n = text.size();
    std::string bytes(sizeof n, '\0');
    std::memcpy(bytes.data(), &n, sizeof n);
    return bytes + text + file.substr(8 + length) + std::string(4, '\0');
  };
  const TemporaryFolder folder;
  fs::copy(model / "config.json", folder.path() / "config.json");
  std::ofstream(folder.path() / "model.safetensors", std::ios::binary)
      << with_extra("h.1.attn.bias");
  Engine old = textbook_engine(folder.path()), usual = textbook_engine(model);
  const std::vector<TokenId> ids = {1, 5, 3};
  Matrix<float> a(3, old.plan().vocab_size), b(3, old.plan().vocab_size);
  const auto first = old.make_sequence(3), second = usual.make_sequence(3);
  const Input one{first.get(), ids, 3}, two{second.get(), ids, 3};
  old.forward({&one, 1}, a.view());
  usual.forward({&two, 1}, b.view());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.rows() * a.cols() * sizeof(float)), 0);

  std::ofstream(folder.path() / "model.safetensors", std::ios::binary) << with_extra("h.1.other");
  EXPECT_THROW(textbook_engine(folder.path()), Error);
}

TEST(Architectures, NoTextIsLongerThanTheTableOfPositions) {
  const fs::path model = TEST_DATA "/models/gpt2-scale-by-layer";  // 9 positions
  for (const BackendKind backend : {BackendKind::Textbook, BackendKind::Cpu}) {
    Engine engine = Engine::open(model, {.backend = backend, .n_threads = 1});
    EXPECT_NO_THROW(engine.make_sequence(9));
    try {
      engine.make_sequence(10);
      ADD_FAILURE() << "a context of 10 is not refused";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "context: expected at most 9 tokens (the model's positions), found 10");
    }
  }
}

}  // namespace
}  // namespace stagecraft
