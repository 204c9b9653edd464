#pragma once

#include <span>
#include <string>
#include <string_view>

#include "checkpoint/gguf.h"

namespace stagecraft {

// The architectures of GGUF that are read here, one entry each. An entry says where a file of it
// differs from what most files have; GgufWeights and gguf_config_json read it, and nothing else
// asks what "general.architecture" a file has.

// GGUF's name of a tensor and Hugging Face's, both without layer and, where both have it,
// ".weight".
struct GgufTensorName {
  // How the checkpoint's tensor differs:
  //   OneRow    a vector is a matrix of one row
  //   Taps      [columns, taps] of a convolution is [columns, 1, taps]
  //   MinusExp  GGUF has -exp(x)
  //   Thirds    the rows of q, then of k, then of v are three tensors
  //   Experts   one matrix, or one bias, per expert: each is a tensor
  //   Heads     one matrix per head of q: each is a tensor
  //   AsStored  nothing: norms_plus_one is not true of this norm
  enum class Change { None, OneRow, Taps, MinusExp, Thirds, Experts, Heads, AsStored };
  // "{}" stands for q, k and v, or for the number of an expert or head.
  std::string_view gguf, hugging_face;
  Change change = Change::None;
};

// A key below the architecture's name, and the field of config.json that has its value.
struct GgufKey {
  enum class Kind { Size, Count, Number, Flag };  // a size is at least 1, a count at least 0
  std::string_view key, field;
  Kind kind = Kind::Size;
  // Else the field is left out where the key is missing, and null where it is 0 (a flag: false).
  bool required = false;
};

// A field of config.json that is true if the file has a tensor, or if it has not. If several name
// one field, it is true if one of them holds.
struct GgufTensorFlag {
  std::string_view field, tensor;
  bool if_present = true;
};

// A field of config.json that this architecture calls otherwise, or must not have ("").
struct GgufField {
  std::string_view usual, own;
};

struct GgufArchitecture {
  std::string_view name;        // "general.architecture"
  std::string_view model_type;  // of config.json
  // Entries of one name differ by it: this one's files have this key, or this tensor ("blk.0...").
  std::string_view marker = "";
  std::span<const GgufTensorName> names = {};  // they go before the common ones
  std::string_view layers = "model.layers.";
  bool pairs = false;           // the rows of q and k are stored in pairs (rope_pairs.h)
  bool norms_plus_one = false;  // weights of norms are stored with 1 added
  // The tensor "rope_freqs.weight", by whose numbers frequencies are divided:
  //   None   there is none
  //   Any    there may be one
  //   Share  there is one, of 1 and then of 1e30: so many pairs of a head turn in global layers
  enum class RopeFactors { None, Any, Share };
  RopeFactors rope_factors = RopeFactors::None;
  GgufKey norm_eps = {"attention.layer_norm_rms_epsilon", "rms_norm_eps"};
  std::span<const GgufKey> keys = {};  // beside those that all architectures have
  std::span<const GgufTensorFlag> flags = {};
  std::span<const GgufField> fields = {};
  // Fields that GGUF does not say and llama.cpp fixes, as JSON. A key may say otherwise.
  std::string_view fixed = "{}";
  bool has_head_dim = true;    // config.json may name the size of a head
  bool latent_heads = false;   // keys and values are computed from one latent per token
  bool sigmoid = false;        // experts are scored by it, else by softmax; with latent_heads
  bool rope_switch = false;    // "rope.scaling.finetuned" says whether there is rope at all
  bool partial_rope = false;   // rope may turn only the first columns of each head
  bool conv_layers = false;    // a layer without heads of k is a short convolution
  bool yarn = false;           // rope may be stretched by yarn
  bool two_kinds = false;      // layers with a window have heads of another size, and another rope
  bool predicts = false;       // the last layers may predict further tokens
  std::size_t period = 0;      // each of so many layers but the last has a window; 0: none has
  std::size_t window = 0;      // where the file does not say; 0: all layers see everything
  std::size_t wide_model = 0;  // see "query_pre_attn_scalar" in gguf_config.cpp; 0: no such field
  std::span<const std::string_view> no_effect = {};  // keys that change nothing for a text
};

// The last layers of a file may predict further tokens; they take no part here. The number of the
// first of them; SIZE_MAX if there is none.
std::size_t gguf_first_predicting_layer(const GgufMetadata& metadata,
                                        const GgufArchitecture& architecture);

// The entry for a file; nullptr if there is none.
const GgufArchitecture* find_gguf_architecture(const GgufFile& file);

// "gemma, gemma2, ... or starcoder2"
std::string gguf_architecture_names();

// Names that most architectures share, of the model and of a layer ("blk.3.").
std::span<const GgufTensorName> gguf_model_names();
std::span<const GgufTensorName> gguf_layer_names();

}  // namespace stagecraft
