#include "backends/textbook/plan_walker.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "model/linear.h"
#include "model/plan_weights.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/check.h"
#include "operators/exact_gelu.h"
#include "operators/geglu.h"
#include "operators/gelu_tanh.h"
#include "operators/kernels/panel_matrix.h"
#include "operators/layer_norm.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"
#include "operators/scaled_attention.h"
#include "operators/silu.h"
#include "operators/soft_cap.h"
#include "operators/swiglu.h"

namespace stagecraft {
namespace {

class Walk {
 public:
  Walk(const Plan& plan, const PlanWeights& weights, std::span<const TokenId> tokens,
       KvCache& cache, WalkWorkspace& w, ThreadPool& threads, MatrixView<float> logits,
       const Probe& probe)
      : plan_(plan),
        weights_(weights),
        tokens_(tokens),
        cache_(cache),
        w_(w),
        threads_(threads),
        logits_(logits),
        probe_(probe),
        rows_(tokens.size()) {}

  void run() {
    for (const Step& step : plan_.steps) {
      layer_ = step.layer;
      std::visit([this](const auto& kind) { compute(kind); }, step.kind);
      if (rows_ == 0) break;  // nobody asked for logits
      const BufferId out = buffer_written(step.kind);
      if (probe_ && !step.name.empty()) probe_(layer_, step.name, rows(out));
    }
    cache_.advance(tokens_.size());
  }

 private:
  void compute(const EmbedStep& s) {
    const auto table = weights_.matrix(s.table);
    for (std::size_t t = 0; t < rows_; ++t) {
      const auto from = table.row(static_cast<std::size_t>(tokens_[t]));
      std::ranges::transform(from, rows(s.out).row(t).begin(),
                             [&](float value) { return value * s.scale; });
    }
    if (s.positions == kNone) return;
    add(weights_.matrix(s.positions).row_range(cache_.length(), rows_), rows(s.out));
  }

  // Each group is a row of its own.
  void compute(const NormStep& s) {
    const auto in = rows(s.in), out = rows(s.out);
    const std::size_t groups = in.cols() / s.group;
    for (std::size_t t = 0; t < rows_; ++t) {
      const MatrixView<const float> from(in.row(t).data(), groups, s.group);
      const MatrixView<float> to(out.row(t).data(), groups, s.group);
      if (s.kind == NormStep::Kind::Rms) {
        rms_norm(from, weights_.vector(s.weight), s.eps, to);
      } else {
        layer_norm(from, weights_.vector(s.weight), weights_.vector(s.bias), s.eps, to);
      }
    }
  }

  void compute(const LinearStep& s) {
    linear({weights_.matrix(s.weight), weights_.vector(s.bias)}, rows(s.in), rows(s.out), threads_);
  }

  void compute(const ActivateStep& s) {
    using Function = ActivateStep::Function;
    const auto gate = rows(s.gate), out = rows(s.out);
    if (s.up != kNone && s.function != Function::Gelu) {
      const auto up = rows(s.up);
      const auto gated = s.function == Function::Silu ? swiglu : geglu;
      for (std::size_t t = 0; t < rows_; ++t) gated(gate.row(t), up.row(t), out.row(t));
      return;
    }
    void (*activate)(std::span<const float>, std::span<float>) = exact_gelu;
    if (s.function == Function::Silu) activate = silu;
    if (s.function == Function::GeluTanh) activate = gelu_tanh;
    for (std::size_t t = 0; t < rows_; ++t) {
      activate(gate.row(t), out.row(t));
      if (s.up == kNone) continue;
      std::ranges::transform(out.row(t), rows(s.up).row(t), out.row(t).begin(), std::multiplies());
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
    for (std::size_t t = 0; t < rows_; ++t) {
      for (float& value : x.row(t)) value *= s.scale;
      if (s.soft_cap != 0.0f) soft_cap(x.row(t), s.soft_cap);
    }
  }

  void compute(const RopeStep& s) {
    const auto& frequencies = plan_.frequencies[static_cast<std::size_t>(s.frequencies)].values;
    const auto x = rows(s.x);
    if (2 * frequencies.size() == s.head_dim) return rope(x, frequencies, cache_.length());
    for (std::size_t head = 0; head < x.cols(); head += s.head_dim) {
      rope(x.col_range(head, 2 * frequencies.size()), frequencies, cache_.length());
    }
  }

  void compute(const StoreStep& s) {
    cache_.append(static_cast<std::size_t>(s.cache), rows(s.k), rows(s.v));
  }

  void compute(const AttentionStep& s) {
    const CacheShape& cache = plan_.cache(s.cache);
    const auto layer = static_cast<std::size_t>(s.cache);
    const std::size_t kv_len = cache_.length() + rows_;
    const MatrixView<float> probabilities(w_.probabilities.data(), s.n_heads * rows_, kv_len);
    const AttentionShape shape{s.n_heads, cache.n_kv_heads, cache.head_dim, s.window};
    const auto keys = cache_.keys(layer, kv_len), values = cache_.values(layer, kv_len);
    const float usual_scale = 1.0f / std::sqrt(static_cast<float>(cache.head_dim));
    if (s.scale == usual_scale && s.soft_cap == 0.0f) {
      attention(rows(s.q), keys, values, shape, probabilities, rows(s.out));
    } else {
      scaled_attention(rows(s.q), keys, values, shape, s.scale, s.soft_cap, probabilities,
                       rows(s.out));
    }
    if (probe_) probe_(layer_, "attn_probs", probabilities);
  }

  // The last rows move to the top.
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
  WalkWorkspace& w_;
  ThreadPool& threads_;
  MatrixView<float> logits_;
  const Probe& probe_;
  std::size_t rows_;  // that live: all tokens, then those that are scored
  int layer_ = kNone;
};

}  // namespace

PlanWeights load_weights(const Plan& plan, const Checkpoint& checkpoint) {
  const std::vector<const StoredTensor*> stored = find_weights(plan, checkpoint);
  PlanWeights weights;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    StoredTensor tensor = stored_weight(plan.weights[i], *stored[i]);
    std::vector<std::byte> copied;
    if (!plan.weights[i].is_contiguous()) {
      tensor = weight_rows(plan.weights[i], tensor, 0, tensor.shape.front(), copied);
    }
    if (!plan.weights[i].is_matrix()) tensor.shape = {1, tensor.shape.front()};
    const std::size_t rows = tensor.shape[0], cols = tensor.shape[1];
    const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % 4 == 0;
    const bool as_stored = aligned && plan.weights[i].is_contiguous();
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
  }
  if (!weights.owned.empty()) checkpoint.release_pages();  // F32 tensors come back as needed
  return weights;
}

WalkWorkspace::WalkWorkspace(const Plan& plan, std::size_t rows, std::size_t context)
    : max_rows(rows), max_context(context) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const bool is_logits = static_cast<BufferId>(i) == plan.logits;  // the caller brings them
    buffers.push_back(is_logits ? Matrix<float>() : Matrix<float>(rows, plan.buffers[i].width));
  }
  probabilities = Matrix<float>(max_heads(plan) * rows, context);
}

KvCache make_kv_cache(const Plan& plan, std::size_t capacity) {
  std::vector<std::size_t> widths;
  for (const CacheShape& shape : plan.caches) widths.push_back(shape.width());
  return {widths, capacity};
}

void walk(const Plan& plan, const PlanWeights& weights, std::span<const TokenId> tokens,
          KvCache& cache, WalkWorkspace& w, ThreadPool& threads, MatrixView<float> logits,
          const Probe& probe) {
  if (tokens.empty() || tokens.size() > w.max_rows) {
    throw Error("forward: expected 1 to {} tokens, found {}", w.max_rows, tokens.size());
  }
  const std::size_t capacity = std::min(cache.capacity(), w.max_context);
  const std::size_t room = context_limit(plan, capacity) - cache.length();
  if (tokens.size() > room) {
    throw Error("forward: expected at most {} more tokens in the context, found {}", room,
                tokens.size());
  }
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= plan.vocab_size) {
      throw Error("forward: token id: expected 0 to {}, found {}", plan.vocab_size - 1, token);
    }
  }
  check_shape("forward", "logits", std::min(logits.rows(), tokens.size()), plan.vocab_size, logits);
  Walk(plan, weights, tokens, cache, w, threads, logits, probe).run();
}

}  // namespace stagecraft
