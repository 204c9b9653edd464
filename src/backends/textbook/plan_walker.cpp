#include "backends/textbook/plan_walker.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "backends/pass_check.h"
#include "model/linear.h"
#include "model/plan_weights.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/clamped_swiglu.h"
#include "operators/exact_gelu.h"
#include "operators/gated_delta.h"
#include "operators/gelu_tanh.h"
#include "operators/layer_norm.h"
#include "operators/neighbour_rope.h"
#include "operators/read_row.h"
#include "operators/relu.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"
#include "operators/route.h"
#include "operators/scaled_attention.h"
#include "operators/short_conv.h"
#include "operators/sigmoid.h"
#include "operators/silu.h"
#include "operators/soft_cap.h"
#include "operators/softmax.h"
#include "operators/swiglu.h"

namespace stagecraft {
namespace {

class Walk {
 public:
  Walk(const PlanProgram& program, std::span<const TokenId> tokens, WalkedText& text,
       WalkWorkspace& w, MatrixView<float> logits, const Probe& probe)
      : plan_(program.plan),
        weights_(program.weights),
        tokens_(tokens),
        cache_(text.cache),
        state_(text.state),
        placement_(text.placement),
        w_(w),
        logits_(logits),
        probe_(probe),
        rows_(tokens.size()) {}

  void run() {
    for (const Step& step : plan_.steps) {
      layer_ = step.layer;
      std::visit([this](const auto& kind) { compute(kind); }, step.kind);
      if (rows_ == 0) break;  // no row is scored
      const BufferId out = buffer_written(step.kind);
      if (probe_ && !step.name.empty()) probe_(layer_, step.name, rows(out));
    }
    cache_.advance(tokens_.size());
  }

  // Computes the steps after the SelectStep; x holds the selected rows.
  void run_head(MatrixView<const float> x) {
    const auto is_select = [](const Step& step) {
      return std::holds_alternative<SelectStep>(step.kind);
    };
    auto step = std::ranges::find_if(plan_.steps, is_select);
    const auto selected = rows(std::get<SelectStep>(step->kind).x);
    for (std::size_t t = 0; t < rows_; ++t) std::ranges::copy(x.row(t), selected.row(t).begin());
    while (++step != plan_.steps.end()) {
      std::visit([this](const auto& kind) { compute(kind); }, step->kind);
    }
  }

 private:
  void compute(const EmbedStep& s) {
    for (std::size_t t = 0; t < rows_; ++t) {
      const auto out = rows(s.out).row(t);
      std::ranges::fill(out, 0.0f);
      if (s.table == kNone) continue;
      std::ranges::transform(weights_.matrix(s.table).row(static_cast<std::size_t>(tokens_[t])),
                             out.begin(), [&](float value) { return value * s.scale; });
    }
    if (s.positions == kNone) return;
    add(weights_.matrix(s.positions).row_range(cache_.length(), rows_), rows(s.out));
  }

  // Treats each group as a row of its own.
  void compute(const NormStep& s) {
    const auto in = rows(s.in), out = rows(s.out);
    const std::size_t groups = in.cols() / s.group;
    const auto weight = weights_.vector(s.weight);
    const bool own = weight.size() > s.group;  // each group has its own weights
    for (std::size_t t = 0; t < rows_; ++t) {
      const MatrixView<const float> from(in.row(t).data(), groups, s.group);
      const MatrixView<float> to(out.row(t).data(), groups, s.group);
      if (!own) norm(s, from, weight, to);
      for (std::size_t g = 0; own && g < groups; ++g) {
        norm(s, from.row_range(g, 1), weight.subspan(g * s.group, s.group), to.row_range(g, 1));
      }
    }
  }

  void norm(const NormStep& s, MatrixView<const float> from, std::span<const float> weight,
            MatrixView<float> to) {
    if (s.kind == NormStep::Kind::Rms && weight.empty()) {
      const std::vector<float> ones(s.group, 1.0f);
      return rms_norm(from, ones, s.eps, to);
    }
    if (s.kind == NormStep::Kind::Rms) return rms_norm(from, weight, s.eps, to);
    layer_norm(from, weight, weights_.vector(s.bias), s.eps, to);
  }

  void compute(const LinearStep& s) {
    linear({weights_.matrix(s.weight), weights_.vector(s.bias)}, rows(s.in), rows(s.out),
           w_.threads);
  }

  void compute(const ActivateStep& s) {
    const auto up = s.up == kNone ? MatrixView<float>()
                                  : rows(s.up).col_range(s.first_column, plan_.buffer(s.out).width);
    for (std::size_t t = 0; t < rows_; ++t) {
      activate(s.function, rows(s.gate).row(t), s.up == kNone ? std::span<float>() : up.row(t),
               rows(s.out).row(t));
    }
  }

  // out = f(gate) * up, or f(gate) if up is empty. out may be gate or up.
  static void activate(ActivateStep::Function function, std::span<const float> gate,
                       std::span<const float> up, std::span<float> out) {
    using Function = ActivateStep::Function;
    if (up.empty()) return activate(function, gate, out);
    if (function == Function::Silu) return swiglu(gate, up, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      float activated = 0.0f;
      activate(function, gate.subspan(i, 1), {&activated, 1});
      out[i] = activated * up[i];
    }
  }

  static void activate(ActivateStep::Function function, std::span<const float> x,
                       std::span<float> out) {
    using Function = ActivateStep::Function;
    switch (function) {
      case Function::Silu:
        return silu(x, out);
      case Function::GeluTanh:
        return gelu_tanh(x, out);
      case Function::Gelu:
        return exact_gelu(x, out);
      case Function::Relu:
        return relu(x, out);
      case Function::Sigmoid:
        return sigmoid(x, out);
      case Function::Identity:
        std::ranges::copy(x, out.begin());
        return;
    }
  }

  void compute(const RouteStep& s) {
    const auto x = rows(s.x);
    const auto score = s.score == RouteStep::Score::Softmax ? softmax : sigmoid;
    for (std::size_t t = 0; t < rows_; ++t) {
      score(x.row(t), x.row(t));
      route(x.row(t), {s.n_chosen, s.normed, weights_.vector(s.bias), s.scale, s.groups});
    }
  }

  // One expert after the other: its weights serve all of its rows while they are in the cache.
  void compute(const ExpertsStep& s) {
    const auto in = rows(s.in), out = rows(s.out), routing_weights = rows(s.routing_weights);
    for (std::size_t t = 0; t < rows_; ++t) std::ranges::fill(out.row(t), 0.0f);
    const std::size_t width = expert_width(plan_, s);
    const auto gate = w_.expert[0].view().col_range(0, width);
    const auto up = w_.expert[1].view().col_range(0, width);
    const auto down = w_.expert[2].view().col_range(0, out.cols());
    for (std::size_t e = 0; e < s.experts.size(); ++e) {
      const ExpertsStep::Expert& expert = s.experts[e];
      for (std::size_t t = 0; t < rows_; ++t) {
        const float weight = routing_weights(t, e);
        if (weight == 0.0f) continue;
        const auto bias = [&](WeightId id) { return weights_.vector(id); };
        const auto row = in.row_range(t, 1);
        linear({weights_.matrix(expert.gate), bias(expert.gate_bias)}, row, gate, w_.threads);
        linear({weights_.matrix(expert.up), bias(expert.up_bias)}, row, up, w_.threads);
        if (s.limit != 0.0f) {
          clamped_swiglu(gate.row(0), up.row(0), s.alpha, s.limit, gate.row(0));
        } else {
          activate(s.function, gate.row(0), up.row(0), gate.row(0));
        }
        linear({weights_.matrix(expert.down), bias(expert.down_bias)}, gate, down, w_.threads);
        std::ranges::transform(down.row(0), out.row(t), out.row(t).begin(),
                               [&](float one, float sum) { return sum + weight * one; });
      }
    }
  }

  void compute(const AddStep& s) {
    if (s.scale == 1.0f) return add(rows(s.in), rows(s.x));
    const auto in = rows(s.in), x = rows(s.x);
    for (std::size_t t = 0; t < rows_; ++t) {
      std::ranges::transform(in.row(t), x.row(t), x.row(t).begin(),
                             [&](float one, float sum) { return sum + s.scale * one; });
    }
  }

  void compute(const MapStep& s) {
    const auto x = rows(s.x);
    const auto by = weights_.vector(s.by);
    for (std::size_t t = 0; t < rows_; ++t) {
      for (std::size_t i = 0; i < x.cols(); ++i) {
        x(t, i) *= by.empty() ? s.scale : s.scale * by[by.size() == 1 ? 0 : i];
      }
      if (s.soft_cap != 0.0f) soft_cap(x.row(t), s.soft_cap);
      if (s.clip == 0.0f) continue;
      for (float& value : x.row(t)) value = std::clamp(value, -s.clip, s.clip);
    }
  }

  void compute(const RopeStep& s) {
    const Frequencies& table = plan_.table(s.frequencies);
    if (!placement_.apart) return rotate(s, table.values, rows(s.x), cache_.length());
    for (std::size_t t = 0; t < rows_; ++t) {  // several tokens may have the same position
      const std::size_t position = placement_.position(table.positions, cache_.length() + t);
      rotate(s, table.values, rows(s.x).row_range(t, 1), position);
    }
  }

  // Rotates row t by the angles of position `position` + t.
  static void rotate(const RopeStep& s, std::span<const float> frequencies, MatrixView<float> x,
                     std::size_t position) {
    const auto rotate = s.pairs == RopeStep::Pairs::Halves ? rope : neighbour_rope;
    if (2 * frequencies.size() == s.head_dim) return rotate(x, frequencies, position);
    for (std::size_t head = s.first_column; head < x.cols(); head += s.head_dim) {
      rotate(x.col_range(head, 2 * frequencies.size()), frequencies, position);
    }
  }

  void compute(const StoreStep& s) {
    cache_.append(static_cast<std::size_t>(s.cache), rows(s.k), rows(s.v));
  }

  void compute(const AttentionStep& s) {
    const CacheShape& cache = plan_.cache(s.cache);
    const auto id = static_cast<std::size_t>(s.cache);
    const std::size_t kv_len = cache_.length() + rows_;
    const MatrixView<float> probabilities(w_.probabilities.data(), s.n_heads * rows_, kv_len);
    const AttentionShape shape{s.n_heads, cache.n_kv_heads, cache.head_dim, s.window};
    const auto keys = cache_.keys(id, kv_len), values = cache_.values(id, kv_len);
    const float common_scale = 1.0f / std::sqrt(static_cast<float>(cache.head_dim));
    const bool is_textbook =
        s.scale == common_scale && s.soft_cap == 0.0f && s.slopes.empty() && s.sinks == kNone;
    if (is_textbook && placement_.prompt == 0) {
      attention(rows(s.q), keys, values, shape, probabilities, rows(s.out));
    } else {
      const ScoreOptions options{s.scale, s.soft_cap, s.slopes, weights_.vector(s.sinks),
                                 placement_.prompt};
      scaled_attention(rows(s.q), keys, values, shape, options, probabilities, rows(s.out));
    }
    if (probe_) probe_(layer_, kAttentionProbs, probabilities);
  }

  void compute(const ShortConvStep& s) {
    short_conv(rows(s.in), weights_.matrix(s.taps), weights_.vector(s.bias), state_.view(s.state),
               rows(s.out));
  }

  void compute(const DeltaStep& s) {
    const DeltaShape shape{plan_.buffer(s.beta).width, s.n_key_heads, s.key_dim,
                           plan_.state(s.state).width, s.in_turn};
    gated_delta(rows(s.in), rows(s.beta), rows(s.decay), weights_.vector(s.rate),
                weights_.vector(s.shift), shape, state_.view(s.state), rows(s.out));
  }

  void compute(const HeadsLinearStep& s) {
    const auto in = rows(s.in), out = rows(s.out);
    const std::size_t n = s.weights.size(), width = in.cols() / n;
    for (std::size_t head = 0; head < n; ++head) {
      const auto weight = weights_.matrix(s.weights[head]);
      linear({weight, {}}, in.col_range(head * width + s.first_column, weight.cols()),
             out.col_range(head * weight.rows(), weight.rows()), w_.threads);
    }
  }

  void compute(const JoinStep& s) {
    const auto a = rows(s.a), b = rows(s.b), out = rows(s.out);
    const std::size_t first = a.cols() / s.n_heads, second = b.cols() / s.n_heads;
    for (std::size_t t = 0; t < rows_; ++t) {
      float* to = out.row(t).data();
      for (std::size_t head = 0; head < s.n_heads; ++head) {
        to = std::ranges::copy(a.row(t).subspan(head * first, first), to).out;
        to = std::ranges::copy(b.row(t).subspan(head * second, second), to).out;
      }
    }
  }

  // Moves the scored rows, which are the last ones, to the top.
  void compute(const SelectStep& s) {
    const std::size_t first = rows_ - logits_.rows();
    rows_ = logits_.rows();
    const auto x = w_.buffers[static_cast<std::size_t>(s.x)].view();
    if (first == 0) return;
    for (std::size_t t = 0; t < rows_; ++t) std::ranges::copy(x.row(first + t), x.row(t).begin());
  }

  MatrixView<float> rows(BufferId id) const {
    if (id == plan_.logits) return logits_;
    return w_.buffers[static_cast<std::size_t>(id)].top_rows(rows_);
  }

  const Plan& plan_;
  const PlanWeights& weights_;
  std::span<const TokenId> tokens_;
  KvCache& cache_;
  SequenceState& state_;
  const Placement& placement_;
  WalkWorkspace& w_;
  MatrixView<float> logits_;
  const Probe& probe_;
  std::size_t rows_;  // of the current step: all tokens, later only the scored ones
  int layer_ = kNone;
};

}  // namespace

PlanWeights load_weights(const Plan& plan, const Checkpoint& checkpoint) {
  const std::vector<const StoredTensor*> stored = find_weights(plan, checkpoint);
  // For each tensor, how many weights still need its bytes. A view needs them as long as it exists.
  std::map<const StoredTensor*, std::size_t> needed_by;
  for (const StoredTensor* tensor : stored) ++needed_by[tensor];
  PlanWeights weights;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    StoredTensor tensor = stored_weight(plan.weights[i], *stored[i]);
    std::vector<std::byte> copied;
    if (!plan.weights[i].stored.is_contiguous()) {
      tensor = weight_rows(plan.weights[i], tensor, 0, tensor.shape.front(), copied);
    }
    if (!plan.weights[i].is_matrix()) tensor.shape = {1, tensor.shape.front()};
    const std::size_t rows = tensor.shape[0], cols = tensor.shape[1];
    const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % 4 == 0;
    const bool as_stored = aligned && plan.weights[i].stored.is_contiguous();
    if (tensor.dtype == DType::F32 && as_stored && plan.weights[i].plus == 0.0f) {
      const auto* values = reinterpret_cast<const float*>(tensor.bytes.data());
      weights.values.push_back({values, rows, cols});
      continue;
    }
    Matrix<float>& values = weights.owned.emplace_back(rows, cols);
    for (std::size_t r = 0; r < rows; ++r) {
      read_row(tensor, r, values.view().row(r));
      for (float& value : values.view().row(r)) value += plan.weights[i].plus;
    }
    weights.values.push_back(values.view());
    if (--needed_by[stored[i]] == 0) checkpoint.drop_copy(*stored[i]);
  }
  if (!weights.owned.empty()) checkpoint.release_pages();  // F32 tensors are read again when used
  return weights;
}

WalkWorkspace::WalkWorkspace(const Plan& plan, std::size_t rows, std::size_t context,
                             std::size_t n_threads)
    : max_rows(rows), max_context(context), threads(n_threads) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const bool is_logits = static_cast<BufferId>(i) == plan.logits;  // in the caller's memory
    buffers.push_back(is_logits ? Matrix<float>() : Matrix<float>(rows, plan.buffers[i].width));
  }
  probabilities = Matrix<float>(max_heads(plan) * rows, context);
  std::size_t widest = 0;
  for (const Step& step : plan.steps) {
    const auto* experts = std::get_if<ExpertsStep>(&step.kind);
    if (experts == nullptr) continue;
    widest = std::max({widest, expert_width(plan, *experts), plan.buffer(experts->out).width});
  }
  for (Matrix<float>& row : expert) row = Matrix<float>(1, widest);
}

KvCache make_kv_cache(const Plan& plan, std::size_t capacity) {
  std::vector<std::size_t> widths;
  for (const CacheShape& shape : plan.caches) widths.push_back(shape.width());
  return {widths, capacity};
}

void check_pass(const Plan& plan, std::span<const TokenId> tokens, const KvCache& cache,
                std::size_t max_rows, std::size_t max_context, MatrixView<float> logits) {
  PassCheck pass(plan, max_rows);
  pass.text(tokens, logits.rows(), {});
  pass.end(logits);
  check_next_tokens(plan, tokens, cache.length(), std::min(cache.capacity(), max_context));
  if (cache.length() == 0) place_text(plan, tokens);  // throws if no text begins like this
}

void walk(const PlanProgram& program, std::span<const TokenId> tokens, WalkedText& text,
          WalkWorkspace& w, MatrixView<float> logits, const Probe& probe) {
  check_pass(program.plan, tokens, text.cache, w.max_rows, w.max_context, logits);
  if (text.cache.length() == 0) text.placement = place_text(program.plan, tokens);
  Walk(program, tokens, text, w, logits, probe).run();
}

void walk_head(const PlanProgram& program, MatrixView<const float> x, WalkWorkspace& w,
               MatrixView<float> logits) {
  const std::vector<TokenId> tokens(x.rows());  // after the layers, only their number matters
  WalkedText text{KvCache(std::span<const std::size_t>(), 0), SequenceState(program.plan), {}};
  Walk(program, tokens, text, w, logits, {}).run_head(x);
}

}  // namespace stagecraft
