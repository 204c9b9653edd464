#pragma once

#include <string>
#include <string_view>

#include "model/decoder_writer.h"

namespace stagecraft {

// Code that models with experts (mixture of experts) share.

// The names of the fields of config.json.
struct ExpertFields {
  std::string_view n = "num_experts";
  std::string_view n_chosen = "num_experts_per_tok";
  std::string_view width = "moe_intermediate_size";
};
struct ExpertDefaults {
  std::size_t n, n_chosen;
  std::size_t width = 0;  // 0: the file must give it
  bool normed = false;
};
struct ExpertSizes {
  std::size_t n = 0, n_chosen = 0;
  std::size_t width = 0;  // the width inside an expert
  bool normed = false;    // the routing weights of the chosen experts are divided by their sum
};
// "norm_topk_prob" sets ExpertSizes::normed. Throws Error naming the field that is missing or out
// of range.
ExpertSizes parse_experts(const ConfigFields& fields, std::size_t n_layers,
                          const ExpertDefaults& defaults, const ExpertFields& names = {});

// Which layers have experts: every "decoder_sparse_step"th layer, except those in
// "mlp_only_layers". [n_layers]
std::vector<bool> parse_expert_layers(const ConfigFields& fields, std::size_t n_layers);

// The names of a layer's tensors.
struct ExpertNames {
  std::string router, experts;  // "model.layers.3.mlp.gate", "model.layers.3.mlp.experts."
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
};
// Writes the steps of one layer's experts: how.x = their routing weights, w.o = the sum of their
// results times these. The width of how.x is the number of experts.
void write_experts(DecoderWriter& w, const RouteStep& how, const ExpertSizes& sizes,
                   const ExpertNames& names, ActivateStep::Function function);
// The same with a route by softmax.
void write_experts(DecoderWriter& w, const ExpertSizes& sizes, BufferId routing_weights,
                   const ExpertNames& names, ActivateStep::Function function);

}  // namespace stagecraft
