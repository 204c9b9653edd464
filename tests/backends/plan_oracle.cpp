#include "tests/backends/plan_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>

#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

using Rows = std::vector<std::vector<double>>;

double as_f16(double value) {
  const float rounded = static_cast<float>(value);
  std::uint16_t bits = 0;
  f32_to_f16({&rounded, 1}, {&bits, 1});
  float kept = 0.0f;
  f16_to_f32({&bits, 1}, {&kept, 1});
  return static_cast<double>(kept);
}

// How far a number as f16 may be off if the number itself may be off by `off`.
double doubt_of_f16(double value, double off) { return as_f16(value + off) - as_f16(value - off); }

// Keeps 8 bits. The number must not be so small that bf16 rounds it to zero.
double as_bf16(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

enum class ScalesIn { F32, F16 };

void round_blocks(std::span<double> row, std::span<double> doubt, ScalesIn format,
                  std::size_t block = 32) {
  for (std::size_t first = 0; first < row.size(); first += block) {
    const std::size_t end = std::min(first + block, row.size());
    double largest = 0.0;
    for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(row[i]));
    if (largest == 0.0) continue;
    const double step = largest / 127.0;
    const float inverse = 127.0f / static_cast<float>(largest);  // the format uses f32
    const double scale = format == ScalesIn::F16 ? as_f16(step) : step;
    const double off = format == ScalesIn::F16 ? doubt_of_f16(step, 1e-6 * step) : 0.0;
    for (std::size_t i = first; i < end; ++i) {
      const auto byte = static_cast<double>(std::nearbyint(static_cast<float>(row[i]) * inverse));
      const bool halfway = std::abs(row[i] / step - byte) > 0.499;
      doubt[i] = (halfway ? scale : 0.0) + std::abs(byte) * off;
      row[i] = scale * byte;
    }
  }
}

class Oracle {
 public:
  Oracle(const Plan& plan, const PlanWeights& weights, std::span<const TokenId> tokens,
         const RoundRow& round, CacheNumbers cache)
      : plan_(plan), weights_(weights), tokens_(tokens), round_(round), cache_numbers_(cache) {
    for (const Buffer& buffer : plan.buffers) {
      buffers_.emplace_back(tokens.size(), std::vector<double>(buffer.width));
    }
    keys_.resize(plan.caches.size());
    values_.resize(plan.caches.size());
    if (plan.prompt) find_prompt(*plan.prompt);
  }

  OracleResult run() {
    for (const Step& step : plan_.steps) {
      std::visit([this](const auto& kind) { compute(kind); }, step.kind);
    }
    for (const auto& row : buffer(plan_.logits)) {
      result_.logits.insert(result_.logits.end(), row.begin(), row.end());
    }
    return std::move(result_);
  }

 private:
  // A prompt ends before the first end token. Without an end token it is empty.
  void find_prompt(const PromptRule& rule) {
    const auto place_of = [&](TokenId token) {
      return static_cast<std::size_t>(std::ranges::find(tokens_, token) - tokens_.begin());
    };
    const std::size_t end = place_of(rule.end);
    prompt_ = end == tokens_.size() ? 0 : end;
    for (const TokenId mask : rule.masks) {
      if (place_of(mask) >= prompt_) continue;
      mask_ = place_of(mask);
      return;
    }
  }
  std::size_t position(Positions positions, std::size_t t) const {
    if (!plan_.prompt) return t;
    if (positions == Positions::Text) return t < prompt_ ? t : mask_;
    return t < prompt_ ? 0 : t + 1 - prompt_;
  }

  Rows& buffer(BufferId id) { return buffers_[static_cast<std::size_t>(id)]; }

  void compute(const EmbedStep& s) {
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      const auto token = static_cast<std::size_t>(tokens_[t]);
      for (std::size_t i = 0; i < buffer(s.out)[t].size(); ++i) {
        const float learned = s.positions == kNone ? 0.0f : weights_.matrix(s.positions)(t, i);
        const float from = s.table == kNone ? 0.0f : weights_.matrix(s.table)(token, i);
        buffer(s.out)[t][i] =
            static_cast<double>(from) * static_cast<double>(s.scale) + static_cast<double>(learned);
      }
      note(buffer(s.out)[t], 2);
    }
  }

  void compute(const NormStep& s) {
    const auto weight = weights_.vector(s.weight), bias = weights_.vector(s.bias);
    const bool centred = s.kind == NormStep::Kind::Layer;
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      std::vector<double> in = buffer(s.in)[t];
      for (std::size_t begin = 0; begin < in.size(); begin += s.group) {
        double squares = 0.0, sum = 0.0;
        for (std::size_t i = begin; centred && i < begin + s.group; ++i) sum += in[i];
        const double mean = sum / static_cast<double>(s.group);
        for (std::size_t i = begin; i < begin + s.group; ++i) in[i] -= mean;
        for (std::size_t i = begin; i < begin + s.group; ++i) squares += in[i] * in[i];
        const double root =
            std::sqrt(squares / static_cast<double>(s.group) + static_cast<double>(s.eps));
        const std::size_t own = weight.size() > s.group ? begin : 0;
        for (std::size_t i = 0; i < s.group; ++i) {
          const double factor = weight.empty() ? 1.0 : static_cast<double>(weight[own + i]);
          buffer(s.out)[t][begin + i] =
              factor * in[begin + i] / root + (bias.empty() ? 0.0 : static_cast<double>(bias[i]));
        }
      }
      note(buffer(s.out)[t], s.group);
    }
  }

  void compute(const LinearStep& s) {
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      buffer(s.out)[t] = product(s.weight, buffer(s.in)[t], weights_.vector(s.bias));
    }
  }

  void compute(const ActivateStep& s) {
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      for (std::size_t i = 0; i < buffer(s.gate)[t].size(); ++i) {
        const double x = buffer(s.gate)[t][i];
        const double up = s.up == kNone ? 1.0 : buffer(s.up)[t][s.first_column + i];
        buffer(s.out)[t][i] = activated(s.function, x) * up;
      }
      note(buffer(s.out)[t], 1);
    }
  }

  static double activated(ActivateStep::Function function, double x) {
    switch (function) {
      case ActivateStep::Function::Silu:
        return x / (1.0 + std::exp(-x));
      case ActivateStep::Function::GeluTanh:
        return x / 2.0 *
               (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
      case ActivateStep::Function::Gelu:
        return x / 2.0 * std::erfc(-x / std::numbers::sqrt2);
      case ActivateStep::Function::Relu:
        return std::max(x, 0.0);
      case ActivateStep::Function::Sigmoid:
        return 1.0 / (1.0 + std::exp(-x));
      case ActivateStep::Function::Identity:
        return x;
    }
    return 0.0;
  }

  void compute(const RouteStep& s) {
    for (auto& row : buffer(s.x)) {
      const double largest = *std::ranges::max_element(row);
      double total = 0.0;
      for (double& x : row) {
        const bool softmax = s.score == RouteStep::Score::Softmax;
        x = softmax ? std::exp(x - largest) : 1.0 / (1.0 + std::exp(-x));
        total += x;
      }
      if (s.score == RouteStep::Score::Sigmoid) total = 1.0;
      for (double& x : row) x /= total;
      std::vector<double> counts = row;
      const auto bias = weights_.vector(s.bias);
      for (std::size_t e = 0; e < bias.size(); ++e) counts[e] += static_cast<double>(bias[e]);
      close_groups(s.groups, counts);
      const std::vector<std::size_t> order = descending(counts);
      double kept = 0.0;
      for (std::size_t i = 0; i < order.size(); ++i) {
        double& share = row[order[i]];
        if (i >= s.n_chosen) share = 0.0;
        kept += share;
      }
      for (double& share : row) share *= static_cast<double>(s.scale) / (s.normed ? kept : 1.0);
      note(row, row.size());
    }
  }

  // The indices of the values in descending order; equal values keep their order.
  static std::vector<std::size_t> descending(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t e) { return values[e]; });
    return order;
  }

  // Sets the numbers of experts outside the chosen groups to -infinity.
  static void close_groups(const RouteGroups& groups, std::span<double> counts) {
    const std::size_t size = counts.size() / groups.n;
    std::vector<double> sums;
    for (std::size_t g = 0; g < groups.n; ++g) {
      const std::span<double> group = counts.subspan(g * size, size);
      const std::vector<std::size_t> order = descending(group);
      double sum = 0.0;
      for (std::size_t i = 0; i < groups.n_counted; ++i) sum += group[order[i]];
      sums.push_back(sum);
    }
    const std::vector<std::size_t> order = descending(sums);
    for (std::size_t i = groups.n_chosen; i < groups.n; ++i) {
      std::ranges::fill(counts.subspan(order[i] * size, size),
                        -std::numeric_limits<double>::infinity());
    }
  }

  void compute(const ExpertsStep& s) {
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      std::vector<double> sum(buffer(s.out)[t].size());
      std::size_t n_terms = 0;  // of all experts together
      for (std::size_t e = 0; e < s.experts.size(); ++e) {
        const double weight = buffer(s.routing_weights)[t][e];
        if (weight == 0.0) continue;
        const ExpertsStep::Expert& x = s.experts[e];
        std::vector<double> g = product(x.gate, buffer(s.in)[t], weights_.vector(x.gate_bias));
        std::vector<double> u = product(x.up, buffer(s.in)[t], weights_.vector(x.up_bias));
        const double limit = s.limit, alpha = s.alpha;
        for (std::size_t i = 0; i < g.size(); ++i) {
          if (limit == 0.0) {
            g[i] = activated(s.function, g[i]) * u[i];
            continue;
          }
          const double low = std::min(g[i], limit);
          g[i] = low / (1.0 + std::exp(-alpha * low)) * (std::clamp(u[i], -limit, limit) + 1.0);
        }
        note(g, 1);
        const std::vector<double> one = product(x.down, g, weights_.vector(x.down_bias));
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * one[i];
        n_terms += g.size();
      }
      result_.most_terms = std::max(result_.most_terms, n_terms);
      buffer(s.out)[t] = sum;
      note(sum, s.experts.size());
    }
  }

  struct Sum {
    double terms = 0.0, sizes = 0.0, doubts = 0.0;

    void add(float weight, double x, double doubt) {
      const double w = weight, term = w * x;
      terms += term;
      sizes += std::abs(term);
      doubts += std::abs(w) * doubt;
    }
  };

  // weight . row. Notes the largest sum of |terms|.
  std::vector<double> product(WeightId id, std::vector<double> row,
                              std::span<const float> bias = {}) {
    const auto weight = weights_.matrix(id);
    std::vector<double> doubt(row.size());
    if (round_) round_(id, row, doubt);
    std::vector<double> out(weight.rows());
    result_.most_terms = std::max(result_.most_terms, row.size());
    if (plan_.weight(id).name == kIdentity) {  // the product would take most of the test's time
      for (std::size_t i = 0; i < row.size(); ++i) {
        result_.doubt = std::max(result_.doubt, doubt[i]);
        result_.largest_sum = std::max(result_.largest_sum, std::abs(row[i]));
      }
      return row;
    }
    for (std::size_t o = 0; o < weight.rows(); ++o) {
      const auto weights = weight.row(o);
      Sum even, odd;  // an addition waits for the previous one to the same sum
      if (!bias.empty()) odd.add(bias[o], 1.0, 0.0);
      for (std::size_t i = 0; i < row.size(); i += 2) {
        even.add(weights[i], row[i], doubt[i]);
        if (i + 1 < row.size()) odd.add(weights[i + 1], row[i + 1], doubt[i + 1]);
      }
      out[o] = even.terms + odd.terms;
      result_.doubt = std::max(result_.doubt, even.doubts + odd.doubts);
      result_.largest_sum = std::max(result_.largest_sum, even.sizes + odd.sizes);
    }
    return out;
  }

  void compute(const AddStep& s) {
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      for (std::size_t i = 0; i < buffer(s.x)[t].size(); ++i) {
        buffer(s.x)[t][i] += static_cast<double>(s.scale) * buffer(s.in)[t][i];
      }
      note(buffer(s.x)[t], 1);
    }
  }

  void compute(const MapStep& s) {
    const double cap = s.soft_cap;
    const auto by = weights_.vector(s.by);
    for (auto& row : buffer(s.x)) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        double& x = row[i];
        x *= static_cast<double>(s.scale);
        if (!by.empty()) x *= static_cast<double>(by[by.size() == 1 ? 0 : i]);
        if (cap != 0.0) x = cap * std::tanh(x / cap);
        const double clip = s.clip;
        if (clip != 0.0 && std::abs(x) > clip) x = std::copysign(clip, x);
      }
      note(row, 1);
    }
    result_.largest_sum = std::max(result_.largest_sum, cap);
  }

  void compute(const RopeStep& s) {
    const auto& [name, frequencies, positions] =
        plan_.frequencies[static_cast<std::size_t>(s.frequencies)];
    const std::size_t half = frequencies.size();
    const std::size_t head_dim = s.head_dim;
    const bool neighbours = s.pairs == RopeStep::Pairs::Neighbours;
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      std::vector<double>& row = buffer(s.x)[t];
      for (std::size_t head = s.first_column; head < row.size(); head += head_dim) {
        for (std::size_t i = 0; i < half; ++i) {
          // The angle is rounded to f32, as in all implementations (numbers.md).
          const double angle = static_cast<float>(position(positions, t)) * frequencies[i];
          const std::size_t first = head + (neighbours ? 2 * i : i);
          const std::size_t second = neighbours ? first + 1 : first + half;
          const double a = row[first], b = row[second];
          row[first] = a * std::cos(angle) - b * std::sin(angle);
          row[second] = b * std::cos(angle) + a * std::sin(angle);
        }
      }
    }
  }

  void compute(const StoreStep& s) {
    const std::size_t head_dim = plan_.cache(s.cache).head_dim;
    const auto at = static_cast<std::size_t>(s.cache);
    keys_[at] = kept(buffer(s.k), head_dim, ScalesIn::F16);
    const bool halves = cache_numbers_ == CacheNumbers::Q8_0;
    values_[at] = kept(buffer(s.v), head_dim, halves ? ScalesIn::F16 : ScalesIn::F32);
  }

  struct Kept {
    Rows rows, doubts;
  };
  // Keys or values, rounded like the cache rounds them, and how far off each may be.
  Kept kept(const Rows& rows, std::size_t head_dim, ScalesIn scales) const {
    Kept all{rows, Rows(rows.size(), std::vector<double>(rows.front().size()))};
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const std::span<double> row = all.rows[t], doubt = all.doubts[t];
      if (cache_numbers_ == CacheNumbers::F16) keep_halves(row, doubt, as_f16);
      if (is_bf16()) keep_halves(row, doubt, as_bf16);
      const bool bytes = cache_numbers_ == CacheNumbers::Q8 || cache_numbers_ == CacheNumbers::Q8_0;
      for (std::size_t d = 0; bytes && d < row.size(); d += head_dim) {
        round_blocks(row.subspan(d, head_dim), doubt.subspan(d, head_dim), scales);
      }
    }
    return all;
  }
  bool is_bf16() const {
    return cache_numbers_ == CacheNumbers::BF16 || cache_numbers_ == CacheNumbers::BF16Rows;
  }
  static void keep_halves(std::span<double> row, std::span<double> doubt, double (*round)(double)) {
    double off = 0.0;  // how far off the numbers of a backend may be before rounding
    for (const double value : row) off = std::max(off, 1e-6 * std::abs(value));
    for (std::size_t i = 0; i < row.size(); ++i) {
      doubt[i] = round(row[i] + off) - round(row[i] - off);
      row[i] = round(row[i]);
    }
  }

  void compute(const AttentionStep& s) {
    const CacheShape& shape = plan_.cache(s.cache);
    const Kept& keys = keys_[static_cast<std::size_t>(s.cache)];
    const Kept& values = values_[static_cast<std::size_t>(s.cache)];
    for (std::size_t head = 0; head < s.n_heads; ++head) {
      const std::size_t at = head * shape.head_dim;
      const std::size_t kv = head / (s.n_heads / shape.n_kv_heads) * shape.head_dim;
      for (std::size_t t = 0; t < tokens_.size(); ++t) {
        const auto asked = std::span(buffer(s.q)[t]).subspan(at, shape.head_dim);
        std::vector<double> query(asked.begin(), asked.end()), query_doubt(shape.head_dim);
        const bool rounds_rows = cache_numbers_ == CacheNumbers::BF16Rows;
        if (cache_numbers_ == CacheNumbers::Q8) round_to_bytes(query, query_doubt, 32);
        if (rounds_rows) keep_halves(query, query_doubt, as_bf16);
        const std::size_t first = s.window != 0 && t + 1 > s.window ? t + 1 - s.window : 0;
        const std::size_t last = std::max(t + 1, prompt_);
        // A score that is off by e changes its share by at most a factor of exp(e). doubts: e;
        // rises: exp(e) - 1.
        std::vector<double> shares, doubts, rises;
        for (std::size_t j = first; j < last; ++j) {
          double score = 0.0, size = 0.0, doubt = 0.0;
          for (std::size_t d = 0; d < shape.head_dim; ++d) {
            const double q = query[d], k = keys.rows[j][kv + d], off = keys.doubts[j][kv + d];
            score += q * k;
            size += std::abs(q * k);
            doubt += std::abs(q) * off + query_doubt[d] * (std::abs(k) + off);
          }
          score *= static_cast<double>(s.scale);
          doubts.push_back(doubt * static_cast<double>(s.scale));
          rises.push_back(std::expm1(doubts.back()));
          largest_score_ = std::max(largest_score_, size * static_cast<double>(s.scale));
          const double cap = s.soft_cap;
          if (cap != 0.0) score = cap * std::tanh(score / cap);
          const double slope = s.slopes.empty() ? 0.0 : static_cast<double>(s.slopes[head]);
          const double bias = slope * (static_cast<double>(t) - static_cast<double>(j));
          largest_score_ = std::max(largest_score_, bias);
          shares.push_back(score - bias);
        }
        const double top = *std::ranges::max_element(shares);
        const double most_doubt = *std::ranges::max_element(doubts);
        double total = 0.0;
        for (double& share : shares) total += share = std::exp(share - top);
        if (s.sinks != kNone) {
          total += std::exp(static_cast<double>(weights_.vector(s.sinks)[head]) - top);
        }
        for (std::size_t d = 0; d < shape.head_dim; ++d) {
          double sum = 0.0, size = 0.0, doubt = 0.0, moved = 0.0, moved_size = 0.0;
          for (std::size_t j = first; j < last; ++j) {
            const double share = shares[j - first] / total, value = values.rows[j][kv + d];
            sum += share * value;
            size += share * std::abs(value);
            doubt += share * values.doubts[j][kv + d];
            moved += share * rises[j - first];
            const double rounding = rounds_rows ? 0x1p-8 : 0.0;  // error of a rounded share
            moved_size += share * (rises[j - first] + rounding) * std::abs(value);
          }
          buffer(s.out)[t][at + d] = sum;
          // The total of the shares changes, too: by a factor of at most exp(most_doubt).
          doubt = std::exp(2.0 * most_doubt) * (doubt + moved_size + moved * std::abs(sum));
          result_.doubt = std::max(result_.doubt, doubt);
          // An absolute error of a score is a relative error of its share.
          result_.largest_sum = std::max(result_.largest_sum, size * (1.0 + largest_score_));
        }
      }
    }
    result_.most_terms = std::max({result_.most_terms, tokens_.size(), shape.head_dim});
  }

  void compute(const ShortConvStep& s) {
    const auto taps = weights_.matrix(s.taps);
    const auto bias = weights_.vector(s.bias);
    const std::size_t past = taps.cols() - 1;
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      for (std::size_t c = 0; c < taps.rows(); ++c) {
        double sum = bias.empty() ? 0.0 : static_cast<double>(bias[c]), size = std::abs(sum);
        for (std::size_t j = past - std::min(past, t); j <= past; ++j) {
          const double term = static_cast<double>(taps(c, j)) * buffer(s.in)[t + j - past][c];
          sum += term;
          size += std::abs(term);
        }
        buffer(s.out)[t][c] = sum;
        result_.largest_sum = std::max(result_.largest_sum, size);
      }
    }
    result_.most_terms = std::max(result_.most_terms, taps.cols());
  }

  void compute(const DeltaStep& s) {
    const auto rate = weights_.vector(s.rate), shift = weights_.vector(s.shift);
    const std::size_t width = plan_.state(s.state).width, key_dim = s.key_dim;
    const std::size_t n_heads = rate.size(), keys = s.n_key_heads * key_dim;
    for (std::size_t head = 0; head < n_heads; ++head) {
      std::vector<std::vector<double>> state(key_dim, std::vector<double>(width));
      for (std::size_t t = 0; t < tokens_.size(); ++t) {
        const std::vector<double>& in = buffer(s.in)[t];
        const std::size_t group = n_heads / s.n_key_heads;
        const std::size_t key = (s.in_turn ? head % s.n_key_heads : head / group) * key_dim;
        std::vector<double> q(in.begin() + static_cast<std::ptrdiff_t>(key),
                              in.begin() + static_cast<std::ptrdiff_t>(key + key_dim));
        std::vector<double> k(in.begin() + static_cast<std::ptrdiff_t>(keys + key),
                              in.begin() + static_cast<std::ptrdiff_t>(keys + key + key_dim));
        const auto length = [](const std::vector<double>& x) {
          return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 1e-6));
        };
        const double q_length = length(q) * std::sqrt(static_cast<double>(key_dim));
        const double k_length = length(k);
        for (double& x : q) x /= q_length;
        for (double& x : k) x /= k_length;
        const double time =
            std::log1p(std::exp(buffer(s.decay)[t][head] + static_cast<double>(shift[head])));
        const double kept = std::exp(-std::exp(static_cast<double>(rate[head])) * time);
        const double write_strength = 1.0 / (1.0 + std::exp(-buffer(s.beta)[t][head]));
        for (std::size_t c = 0; c < width; ++c) {
          const double v = in[2 * keys + head * width + c];
          double held = 0.0, sum = 0.0, size = std::abs(v);
          for (std::size_t i = 0; i < key_dim; ++i) held += k[i] * (state[i][c] *= kept);
          for (std::size_t i = 0; i < key_dim; ++i) {
            state[i][c] += k[i] * write_strength * (v - held);
            sum += q[i] * state[i][c];
            size += std::abs(state[i][c]);
          }
          buffer(s.out)[t][head * width + c] = sum;
          result_.largest_sum = std::max(result_.largest_sum, size);
        }
      }
    }
    result_.most_terms = std::max({result_.most_terms, key_dim, tokens_.size()});
  }

  void compute(const HeadsLinearStep& s) {
    const std::size_t width = plan_.buffer(s.in).width / s.weights.size();
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      buffer(s.out)[t].clear();
      for (std::size_t head = 0; head < s.weights.size(); ++head) {
        const auto first =
            buffer(s.in)[t].begin() + static_cast<std::ptrdiff_t>(head * width + s.first_column);
        const auto n = static_cast<std::ptrdiff_t>(weights_.matrix(s.weights[head]).cols());
        const std::vector<double> one = product(s.weights[head], {first, first + n});
        buffer(s.out)[t].insert(buffer(s.out)[t].end(), one.begin(), one.end());
      }
    }
  }

  void compute(const JoinStep& s) {
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      buffer(s.out)[t].clear();
      for (std::size_t head = 0; head < s.n_heads; ++head) {
        for (const BufferId id : {s.a, s.b}) {
          const std::vector<double>& row = buffer(id)[t];
          const std::size_t width = row.size() / s.n_heads;
          const auto first = row.begin() + static_cast<std::ptrdiff_t>(head * width);
          buffer(s.out)[t].insert(buffer(s.out)[t].end(), first,
                                  first + static_cast<std::ptrdiff_t>(width));
        }
      }
    }
  }

  void compute(const SelectStep&) {}  // all rows are scored

  void note(const std::vector<double>& row, std::size_t terms) {
    for (const double value : row) {
      result_.largest_sum = std::max(result_.largest_sum, std::abs(value));
    }
    result_.most_terms = std::max(result_.most_terms, terms);
  }

  const Plan& plan_;
  const PlanWeights& weights_;
  std::span<const TokenId> tokens_;
  const RoundRow& round_;
  const CacheNumbers cache_numbers_;
  std::vector<Rows> buffers_;
  std::vector<Kept> keys_, values_;    // by CacheId
  std::size_t prompt_ = 0, mask_ = 0;  // the prompt's length; the position of its mask
  double largest_score_ = 0.0;
  OracleResult result_;
};

}  // namespace

void round_to_bytes(std::span<double> row, std::span<double> doubt, std::size_t block) {
  round_blocks(row, doubt, ScalesIn::F32, block);
}

OracleResult run_oracle(const Plan& plan, const PlanWeights& weights,
                        std::span<const TokenId> tokens, const RoundRow& round,
                        CacheNumbers cache) {
  return Oracle(plan, weights, tokens, round, cache).run();
}

double relative_error(std::span<const float> got, const OracleResult& expected) {
  const double unit = 0x1p-23 * (2.0 + 0.5 * std::sqrt(static_cast<double>(expected.most_terms))) *
                      expected.largest_sum;
  double worst = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(static_cast<double>(got[i]) - expected.logits[i]);
    worst = std::isnan(off) ? 1e30 : std::max(worst, (off - expected.doubt) / unit);
  }
  return worst;
}

}  // namespace stagecraft
