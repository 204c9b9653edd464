#pragma once

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/model_source.h"
#include "checkpoint/safetensors_writer.h"
#include "tensor/matrix.h"
#include "tests/support/temporary_folder.h"
#include "text/chat_format.h"

namespace stagecraft {

// The built-in template belongs to no model.
inline ChatFormat chatml_format(const Tokenizer& tokenizer) {
  return ChatFormat::open("", tokenizer, {"chatml"});
}

// A ChatML model in a temporary folder, which the destructor deletes: random weights, and a
// byte-level tokenizer with a few merges. Its answers are nonsense, always the same, and end after
// a few dozen tokens.
class TinyChatModel {
 public:
  static constexpr std::size_t kMaxSeqLen = 512;

  struct Options {
    bool chat_tokens = true;  // false: the tokenizer has no ChatML tokens
    bool im_end = true;       // false: it has no <|im_end|>
    bool special = true;      // whether these tokens are marked as special
    bool endless = false;     // whether an answer never ends
    bool convolves = false;   // the first layer is a convolution, whose state cannot be cut
  };

  TinyChatModel() : TinyChatModel(Options()) {}
  explicit TinyChatModel(const Options& options) {
    write_tokenizer(options);
    write_config(options);
    write_weights(options);
  }

  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  using Json = nlohmann::json;
  static constexpr std::size_t kDim = 16, kFfnDim = 24, kLayers = 2, kHeads = 4, kKvHeads = 2;

  // GPT-2's character for each byte: the byte itself if it is printable, otherwise the next
  // character from U+0100 on.
  static std::vector<std::string> byte_characters() {
    std::vector<std::string> characters;
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool shown = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
      const unsigned code = shown ? byte : next++;
      characters.push_back(code < 0x80 ? std::string(1, static_cast<char>(code))
                                       : std::string{static_cast<char>(0xc0 | code >> 6),
                                                     static_cast<char>(0x80 | (code & 0x3f))});
    }
    return characters;
  }

  void write_tokenizer(const Options& options) {
    Json vocab, added = Json::array();
    int id = 0;
    for (const char* token : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
      const bool is_there = id == 0 || (options.chat_tokens && (id == 1 || options.im_end));
      const std::string content = is_there ? token : "<other" + std::to_string(id) + ">";
      vocab[content] = id;
      added.push_back({{"id", id++},
                       {"content", content},
                       {"special", options.special},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false}});
    }
    const std::vector<std::string> bytes = byte_characters();
    for (const std::string& character : bytes) vocab[character] = id++;
    const std::string space = bytes[' '], newline = bytes['\n'];
    Json merges = Json::array();
    for (const auto& [a, b] :
         std::vector<std::pair<std::string, std::string>>{{newline, newline},
                                                          {space, space},
                                                          {"h", "e"},
                                                          {"l", "l"},
                                                          {space, "t"},
                                                          {"u", "s"},
                                                          {"e", "r"},
                                                          {"us", "er"},
                                                          {"he", "ll"},
                                                          {"a", "n"},
                                                          {"i", "n"},
                                                          {"<", "|"},
                                                          {"|", ">"},
                                                          {bytes[0xe4], bytes[0xbd]}}) {
      merges.push_back(a + " " + b);
      vocab[a + b] = id++;
    }
    vocab_size_ = static_cast<std::size_t>(id);
    const Json byte_level = {{"type", "ByteLevel"},
                             {"add_prefix_space", false},
                             {"trim_offsets", true},
                             {"use_regex", true}};
    write_file(folder_.file("tokenizer.json"),
               Json{{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", added},
                    {"normalizer", nullptr},
                    {"pre_tokenizer", byte_level},
                    {"post_processor", nullptr},
                    {"decoder", byte_level},
                    {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}}
                   .dump());
  }

  void write_config(const Options& options) const {
    // eos is not <|im_end|>, so a chat must know by itself which token ends an answer.
    Json config = {{"architectures", {"LlamaForCausalLM"}},
                   {"model_type", "llama"},
                   {"vocab_size", vocab_size_},
                   {"hidden_size", kDim},
                   {"intermediate_size", kFfnDim},
                   {"num_hidden_layers", kLayers},
                   {"num_attention_heads", kHeads},
                   {"num_key_value_heads", kKvHeads},
                   {"hidden_act", "silu"},
                   {"rms_norm_eps", 1e-5},
                   {"rope_theta", 10000.0},
                   {"max_position_embeddings", kMaxSeqLen},
                   {"tie_word_embeddings", false},
                   {"eos_token_id", 0}};
    if (options.convolves) {
      config.update({{"architectures", {"Lfm2ForCausalLM"}},
                     {"model_type", "lfm2"},
                     {"full_attn_idxs", {1}},
                     {"block_auto_adjust_ff_dim", false}});
    }
    write_file(folder_.file("config.json"), config.dump());
  }

  void write_weights(const Options& options) {
    add("model.embed_tokens.weight", {vocab_size_, kDim}, 1.0);
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string layer = "model.layers." + std::to_string(i) + ".";
      const bool lfm2 = options.convolves;
      const std::string mlp = layer + (lfm2 ? "feed_forward." : "mlp.");
      add_ones(layer + (lfm2 ? "operator_norm" : "input_layernorm") + ".weight");
      if (lfm2 && i == 0) {
        add(layer + "conv.conv.weight", {kDim, 1, 3}, 0.5);
        add(layer + "conv.in_proj.weight", {3 * kDim, kDim}, 0.5);
        add(layer + "conv.out_proj.weight", {kDim, kDim}, 0.5);
      } else {
        add(layer + "self_attn.q_proj.weight", {kDim, kDim}, 0.5);
        add(layer + "self_attn.k_proj.weight", {kDim * kKvHeads / kHeads, kDim}, 0.5);
        add(layer + "self_attn.v_proj.weight", {kDim * kKvHeads / kHeads, kDim}, 0.5);
        add(layer + "self_attn." + (lfm2 ? "out" : "o") + "_proj.weight", {kDim, kDim}, 0.5);
      }
      if (lfm2 && i == 1) {
        add_ones(layer + "self_attn.q_layernorm.weight", kDim / kHeads);
        add_ones(layer + "self_attn.k_layernorm.weight", kDim / kHeads);
      }
      add_ones(layer + (lfm2 ? "ffn_norm" : "post_attention_layernorm") + ".weight");
      add(mlp + (lfm2 ? "w1" : "gate_proj") + ".weight", {kFfnDim, kDim}, 0.4);
      add(mlp + (lfm2 ? "w3" : "up_proj") + ".weight", {kFfnDim, kDim}, 0.4);
      add(mlp + (lfm2 ? "w2" : "down_proj") + ".weight", {kDim, kFfnDim}, 0.4);
    }
    add_ones(options.convolves ? "model.embedding_norm.weight" : "model.norm.weight");
    float* head = add("lm_head.weight", {vocab_size_, kDim}, 1.0);
    if (options.endless) std::fill(head, head + 3 * kDim, 0.0f);
    // Makes <|im_end|> likelier than other tokens: answers have a few dozen tokens.
    for (std::size_t i = 0; i < kDim; ++i) head[2 * kDim + i] *= 2.2f;
    write_safetensors(folder_.path() / "model.safetensors", tensors_, {});
  }

  // Adds a tensor of random numbers around 0 (Irwin-Hall: the same on every machine).
  float* add(const std::string& name, const std::vector<std::size_t>& shape, double scale) {
    const std::size_t rows = shape.size() == 1 ? 1 : shape[0];
    Matrix<float>& values = owned_.emplace_back(rows, shape.back());
    const std::size_t count = rows * shape.back();
    for (std::size_t i = 0; i < count; ++i) {
      double sum = -6.0;
      for (int k = 0; k < 12; ++k) sum += static_cast<double>(random_() >> 11) * 0x1p-53;
      values.data()[i] = static_cast<float>(sum * scale);
    }
    tensors_.push_back({name, DType::F32, shape, std::as_bytes(std::span(values.data(), count))});
    return values.data();
  }
  void add_ones(const std::string& name, std::size_t n = kDim) {
    float* values = add(name, {n}, 0.0);
    std::fill(values, values + n, 1.0f);
  }

  TemporaryFolder folder_;
  std::size_t vocab_size_ = 0;
  std::mt19937_64 random_{20261120};
  std::vector<Matrix<float>> owned_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace stagecraft
