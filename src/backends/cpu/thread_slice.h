#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "backends/cpu/cpu_workspace.h"
#include "backends/cpu/packed_weights.h"

namespace stagecraft {

// [begin, end) of rows, or of whatever is counted.
struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// Rows ready to be multiplied, wherever they lie.
struct Rows {
  const RoundedRows* prepared = nullptr;
  MatrixView<const float> f32;
};

// Where a kernel puts its 32 outputs per row, or adds them.
struct TileOut {
  float* data;
  std::size_t stride = kPanelOutputs;
  bool add = false;
};

// The number formats of activations that some matrices' kernels ask for, by ActivationType.
using ActivationTypes = std::array<bool, 3>;

// out[r] = f(weight * row r + bias), or += that.
struct Product {
  const PanelMatrix* weight = nullptr;
  const float* bias = nullptr;  // [outputs], or nullptr
  MatrixView<float> out = {};   // [rows, outputs]
  bool add = false;
  // f of the sum and the bias (Kernels::activate), or nullptr.
  void (*activate)(const float* x, const float* up, std::size_t n, float* out) = nullptr;
};

// All threads walk through a pass side by side; this is one of them at the products: it prepares
// rows for the kernels and multiplies its share of the panels. `thread` of `n_threads`.
class ThreadSlice {
 public:
  ThreadSlice(CpuWorkspace& w, std::size_t thread, std::size_t n_threads)
      : w_(w), thread_(thread), n_threads_(n_threads), scratch_(w.scratch[thread]), k_(w.kernels) {}

  CpuWorkspace::Scratch& scratch() const { return scratch_; }

  bool is_first() const { return thread_ == 0; }
  // Of n things, those that are this thread's.
  Range share(std::size_t n) const {
    return {n * thread_ / n_threads_, n * (thread_ + 1) / n_threads_};
  }

  // Waits until all threads are here. Between two barriers no thread writes what another reads.
  void barrier() const {
    if (n_threads_ > 1) w_.threads.barrier();
  }

  // Norms rows, where a norm is given, and puts them into the number formats that some matrices'
  // kernels ask for. In a long pass all threads must call it: each does its share, and they wait
  // for each other. order: row r of the result is row order[r] of x; empty: all rows.
  Rows prepare(MatrixView<const float> x, const PackedNorm& norm, ActivationTypes types,
               std::span<const std::uint32_t> order = {}) const;

  // Writes row r of p, which is `width` wide, in one of the rounded formats.
  void round_row(const float* row, ActivationType type, std::size_t r, std::size_t width,
                 RoundedRows& p) const {
    round_part(row, type, r, {0, width}, width, p);
  }
  // Only these columns of it, whose numbers stand at x. Q8: a whole number of blocks.
  void round_part(const float* x, ActivationType type, std::size_t r, Range columns,
                  std::size_t width, RoundedRows& p) const;

  // This thread's share of several products of the same rows.
  void multiply(const Rows& x, Range rows, std::span<const Product> products) const;

  // Panels of a matrix times rows [first, first + n), n at most the kernel's most; the outputs of
  // neighbouring panels lie side by side. All rows of a panel together fetch the next panel on
  // their way; these rows fetch their part of it. next: where the matrix of the same size begins
  // that they fetch instead.
  void tiles(const PanelMatrix& m, Range panels, const Rows& x, std::size_t first, std::size_t n,
             const TileOut& out, Range all = {}, const std::byte* next = nullptr) const;
  void tile(const PanelMatrix& m, std::size_t panel, const Rows& x, std::size_t first,
            std::size_t n, const TileOut& out, Range all = {}) const {
    tiles(m, {panel, panel + 1}, x, first, n, out, all);
  }

  ActivationType activation_type(const PanelMatrix& m) const {
    return k_.activation_type[static_cast<std::size_t>(m.layout)];
  }
  std::size_t max_rows(const PanelMatrix& m) const {
    return k_.max_rows[static_cast<std::size_t>(m.layout)];
  }

  // This thread's share of panels times rows: each(panels, rows), one panel and some of the rows,
  // or where all rows are one tile several panels. Where there are many rows, each group of threads
  // has some of them: what a thread has written in one step, it then finds in its own cache in the
  // next. The threads of a group share its tiles, so that none has a panel more than another.
  template <class Each>
  void share_tiles(std::size_t panels, Range rows, Each each) const {
    const std::size_t groups = group_count(rows.size()), members = n_threads_ / groups;
    const std::size_t group = thread_ / members, member = thread_ % members;
    const Range some{rows.begin + first_row(rows.size(), group, groups),
                     rows.begin + first_row(rows.size(), group + 1, groups)};
    const std::size_t tiles = panels * tile_count(some);
    for_tiles({tiles * member / members, tiles * (member + 1) / members}, some, each);
  }
  std::size_t tile_count(Range rows) const {
    return (rows.size() + k_.rows_per_share - 1) / k_.rows_per_share;
  }
  // The same for tiles of any range; they are counted panel by panel.
  template <class Each>
  void for_tiles(Range mine, Range rows, Each each) const {
    const std::size_t tiles = tile_count(rows);
    if (tiles == 1) return each(mine, rows);
    for (std::size_t i = mine.begin; i < mine.end;) {
      const std::size_t panel = i / tiles;
      const std::size_t first = i % tiles;
      const std::size_t last = std::min(tiles, first + mine.end - i);
      each(Range{panel, panel + 1},
           Range{rows.begin + first * k_.rows_per_share,
                 std::min(rows.end, rows.begin + last * k_.rows_per_share)});
      i += last - first;
    }
  }

 private:
  // Into how many groups the threads are divided. Each group reads all weights, so its rows must be
  // enough that this costs little.
  std::size_t group_count(std::size_t rows) const {
    constexpr std::size_t kManyRows = 128;
    std::size_t groups = n_threads_;
    while (n_threads_ % groups != 0 || (groups > 1 && rows < groups * kManyRows)) --groups;
    return groups;
  }
  // Where the rows of a group begin: at a multiple of 16, which one tile of AMX takes.
  static std::size_t first_row(std::size_t rows, std::size_t group, std::size_t groups) {
    constexpr std::size_t kTogether = 16;
    if (group == groups) return rows;
    return (rows * group / groups + kTogether / 2) / kTogether * kTogether;
  }
  void multiply_panels(const Rows& x, const Product& product, Range panels, Range rows) const;
  // Through scratch memory: for a bias, an activation, or a panel that is not full.
  void multiply_panel(const Rows& x, const Product& product, std::size_t panel, Range rows) const;

  CpuWorkspace& w_;
  std::size_t thread_, n_threads_;
  CpuWorkspace::Scratch& scratch_;
  const Kernels& k_;
};

}  // namespace stagecraft
