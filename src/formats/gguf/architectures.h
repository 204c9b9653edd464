#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/gguf/file.h"

namespace stagecraft {

// The GGUF architectures that this engine reads, one entry each. An entry lists how files of the
// architecture differ from most GGUF files. Only weights.cpp and the files for config.json use the
// entries; no other code reads "general.architecture".

// GGUF's name of a tensor and Hugging Face's name, both without the layer, and without ".weight" if
// both have it.
struct GgufTensorName {
  // How the tensor of the Hugging Face checkpoint differs from the one in the GGUF file:
  //   OneRow    GGUF has a vector; it becomes a matrix of one row
  //   Taps      the weights [columns, taps] of a convolution become [columns, 1, taps]
  //   MinusExp  GGUF has -exp(x); it becomes x
  //   Thirds    the rows of q, then k, then v become three tensors
  //   Experts   one matrix or one bias per expert; each becomes a tensor
  //   Heads     one matrix per head of q; each becomes a tensor
  //   AsStored  no difference, although norms_plus_one is set: it does not apply to this norm
  enum class Change { None, OneRow, Taps, MinusExp, Thirds, Experts, Heads, AsStored };
  // "{}" in the Hugging Face name stands for q, k or v, or for the number of an expert or head.
  std::string_view gguf, hugging_face;
  Change change = Change::None;
};

// A metadata key, without the "llama." of the architecture, and the field of config.json that gets
// its value.
struct GgufKey {
  enum class Kind { Size, Count, Number, Flag };  // a size is at least 1, a count at least 0
  std::string_view key, field;
  Kind kind = Kind::Size;
  // True: a missing key is an error. False: the field is left out if the key is missing, and null
  // if its value is 0 (a flag: false).
  bool required = false;
};

// A field of config.json that is true if the file has a tensor (or, with if_present = false, if it
// has not). If several entries name one field, it is true if one of them makes it true.
struct GgufTensorFlag {
  std::string_view field, tensor;
  bool if_present = true;
};

// A field of config.json that has another name in this architecture, or must be left out (own =
// "").
struct GgufField {
  std::string_view common, own;
};

// The tensor of a GGUF file by whose numbers the frequencies of RoPE are divided.
inline constexpr std::string_view kGgufRopeFactors = "rope_freqs.weight";

struct GgufArchitecture {
  std::string_view name;        // "general.architecture"
  std::string_view model_type;  // of config.json
  // Tells entries with the same name apart: files of this entry have this key, or this tensor
  // ("blk.0..."). Empty: the entry for files without another entry's marker.
  std::string_view marker = "";
  std::span<const GgufTensorName> names = {};  // take precedence over the common names
  std::string_view layers = "model.layers.";
  bool pairs = false;           // the rows of q and k are stored as RoPE pairs (rope_pairs.h)
  bool norms_plus_one = false;  // weights of norms are stored with 1 added
  // The tensor kGgufRopeFactors:
  //   None     the files do not have it
  //   Any      a file may have it
  //   Partial  every file has it: 1 for the pairs of a head that RoPE rotates in global layers,
  //            then 1e30 for the others
  enum class RopeFactors { None, Any, Partial };
  RopeFactors rope_factors = RopeFactors::None;
  GgufKey norm_eps = {"attention.layer_norm_rms_epsilon", "rms_norm_eps"};
  std::span<const GgufKey> keys = {};  // in addition to those of all architectures
  std::span<const GgufTensorFlag> flags = {};
  std::span<const GgufField> fields = {};
  // Fields for which GGUF has no key or the key may be missing, with the values that llama.cpp
  // uses, as JSON. A key takes precedence.
  std::string_view fixed = "{}";
  bool has_head_dim = true;    // config.json may have the field head_dim
  bool latent_heads = false;   // keys and values are computed from one latent per token
  bool sigmoid = false;        // experts are scored by sigmoid, not softmax (with latent_heads)
  bool rope_switch = false;    // "rope.scaling.finetuned" = false: the model has no RoPE
  bool partial_rope = false;   // RoPE may rotate only the first columns of each head
  bool conv_layers = false;    // a layer without heads of k is a short convolution
  bool yarn = false;           // RoPE may be scaled by yarn
  bool two_kinds = false;      // layers with a window have another head size and another RoPE
  bool predicts = false;       // the last layers may predict further tokens
  std::size_t period = 0;      // of `period` layers, all but the last have a window; 0: none has
  std::size_t window = 0;      // default window if the file has no such key; 0: no window
  std::size_t wide_model = 0;  // see "query_pre_attn_scalar" in config.cpp; 0: no such field
  std::span<const std::string_view> no_effect = {};  // keys that have no effect on text
};

// The last layers of a file may predict further tokens; this engine does not use them. Returns the
// index of the first such layer, or SIZE_MAX if there is none.
std::size_t gguf_first_predicting_layer(const GgufMetadata& metadata,
                                        const GgufArchitecture& architecture);

// The entry for a file; nullptr if there is none.
const GgufArchitecture* find_gguf_architecture(const GgufFile& file);

// "gemma, gemma2, ... or starcoder2"
std::string gguf_architecture_names();

// Tensor names that most architectures share: those outside layers, and those of a layer
// ("blk.3.").
std::span<const GgufTensorName> gguf_model_names();
std::span<const GgufTensorName> gguf_layer_names();

}  // namespace stagecraft
