#include "model/architectures/experts_common.h"

#include <fmt/format.h>

#include "model/layer_fields.h"

namespace stagecraft {
namespace {

// The most experts of all layers together. Each expert is a few tensors. No real file has more than
// some ten thousand experts.
constexpr std::size_t kMaxExperts = std::size_t{1} << 16;

std::size_t size_up_to(const ConfigFields& fields, std::string_view key, std::size_t default_value,
                       std::size_t most) {
  const std::size_t value = fields.size_or(key, default_value);
  if (value <= most) return value;
  throw Error("{}: '{}': expected 1 to {}, found {}", fields.where(), key, most, value);
}

}  // namespace

ExpertSizes parse_experts(const ConfigFields& fields, std::size_t n_layers,
                          const ExpertDefaults& defaults, const ExpertFields& names) {
  ExpertSizes sizes;
  sizes.n = size_up_to(fields, names.n, defaults.n, kMaxExperts / n_layers);
  sizes.n_chosen = size_up_to(fields, names.n_chosen, defaults.n_chosen, sizes.n);
  sizes.width =
      defaults.width == 0 ? fields.size(names.width) : fields.size_or(names.width, defaults.width);
  sizes.normed = fields.flag_or("norm_topk_prob", defaults.normed);
  return sizes;
}

std::vector<bool> parse_expert_layers(const ConfigFields& fields, std::size_t n_layers) {
  std::vector<bool> has = every_nth_layer(n_layers, fields.size_or("decoder_sparse_step", 1));
  const auto dense = parse_listed_layers(fields, "mlp_only_layers", n_layers);
  for (std::size_t i = 0; dense && i < n_layers; ++i) has[i] = has[i] && !(*dense)[i];
  return has;
}

void write_experts(DecoderWriter& w, const RouteStep& how, const ExpertSizes& sizes,
                   const ExpertNames& names, ActivateStep::Function function) {
  w.route("", w.n, names.router, how);
  ExpertsStep step{w.o, w.n, how.x, {}, function};
  for (std::size_t i = 0; i < sizes.n; ++i) {
    const std::string at = fmt::format("{}{}.", names.experts, i);
    step.experts.push_back(
        w.expert(w.n, w.o, sizes.width, at + names.gate, at + names.up, at + names.down));
  }
  w.step("experts", std::move(step));
}

void write_experts(DecoderWriter& w, const ExpertSizes& sizes, BufferId routing_weights,
                   const ExpertNames& names, ActivateStep::Function function) {
  const RouteStep how{.x = routing_weights, .n_chosen = sizes.n_chosen, .normed = sizes.normed};
  write_experts(w, how, sizes, names, function);
}

}  // namespace stagecraft
