#pragma once

#include <span>

#include "model/fast_forward.h"
#include "model/fast_part.h"

namespace stagecraft {

// One thread's part in the attention of a pass: from w.q, w.k and w.v, which all threads have
// written, to w.attention_out. Keys and values lie in panels (see PanelCache), so scores and
// weighted sums are products like any other; softmax goes along block by block (Milakov and
// Gimelshein 2018).
class FastAttention {
 public:
  FastAttention(const Config& config, std::span<const SequenceTokens> batch, FastWorkspace& w,
                const FastPart& part);

  // Stores the new keys and values of a layer, and attends: all rows, or only those to be scored.
  // Ends with a barrier.
  void run(std::size_t layer, const PackedLayer& p, bool only_scored);

 private:
  struct Place {  // of a row
    PanelCache* cache;
    std::size_t position;
  };
  Place place_of(std::size_t row) const;
  void rope(const float* head, std::size_t row, const std::vector<float>& norm, float* out) const;
  void store_key(std::size_t layer, const PackedLayer& p, std::size_t row, std::size_t kv_head);
  void attend(std::size_t layer, const PackedLayer& p, bool stored, bool only_scored);
  void attend_rows(std::size_t layer, const PackedLayer& p, PanelCache& cache, std::size_t position,
                   std::size_t row, std::size_t n, std::size_t kv_head);
  void score(const PanelMatrix& keys, std::size_t queries, std::size_t used);
  void softmax(std::size_t i, std::size_t begin, std::size_t first, std::size_t last, float scale,
               float* out, std::size_t width);
  void weigh(const PanelMatrix& values, std::size_t queries, float* out, std::size_t width);

  const Config& config_;
  std::span<const SequenceTokens> batch_;
  FastWorkspace& w_;
  const FastPart& part_;
  FastWorkspace::Scratch& scratch_;
  const Kernels& k_;
  std::size_t rows_;  // of all sequences
  bool single_;       // one of each
};

}  // namespace stagecraft
