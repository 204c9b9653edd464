#pragma once

#include <algorithm>
#include <initializer_list>

#include "model/fast_workspace.h"
#include "model/packed_model.h"

namespace stagecraft {

// [begin, end) of rows, or of whatever is counted.
struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// Rows ready to be multiplied, wherever they lie.
struct Rows {
  const PreparedRows* prepared = nullptr;
  MatrixView<const float> f32;
};

// Where a kernel puts its 32 outputs of each row, or adds them.
struct TileOut {
  float* data;
  std::size_t stride = kPanelOutputs;
  bool add = false;
};

// out[r] = weight * row r + bias, or += that.
struct Product {
  const PackedLinear* linear;
  MatrixView<float> out;  // [rows, outputs]
  bool add = false;
};

// What one of the threads that go through a pass side by side has to do with products: rows get
// ready for the kernels, panels are multiplied with them, each thread its share. `part` of `parts`.
class FastPart {
 public:
  FastPart(const Config& config, FastWorkspace& w, std::size_t part, std::size_t parts)
      : config_(config),
        w_(w),
        part_(part),
        parts_(parts),
        scratch_(w.scratch[part]),
        k_(w.kernels) {}

  FastWorkspace::Scratch& scratch() const { return scratch_; }

  bool is_first() const { return part_ == 0; }
  // Of n things, those that are this thread's.
  Range share(std::size_t n) const { return {n * part_ / parts_, n * (part_ + 1) / parts_}; }

  // All threads are here. Between two barriers no thread writes what another reads.
  void barrier() const {
    if (parts_ > 1) w_.threads.barrier();
  }

  // Norms rows, where a norm is given, and puts them into the forms that the matrices' kernels ask
  // for. Long passes: all threads must call it, each does its share, and they wait for each other.
  Rows prepare(MatrixView<const float> x, const std::vector<float>* norm,
               std::initializer_list<const PackedLinear*> linears) const;

  // Makes row r of p, which is `width` wide, in one of the forms that are rounded.
  void round_row(const float* row, RowForm form, std::size_t r, std::size_t width,
                 PreparedRows& p) const;

  // This thread's share of several products of the same rows.
  void multiply(const Rows& x, Range rows, std::initializer_list<Product> products) const;

  // One panel of a matrix times rows [first, first + n), n at most the kernel's most. All of the
  // rows that the panel is for fetch its neighbour on the way, these their part of it.
  void tile(const PanelMatrix& m, std::size_t panel, const Rows& x, std::size_t first,
            std::size_t n, const TileOut& out, Range all = {}) const;

  RowForm row_form(const PanelMatrix& m) const {
    return k_.row_form[static_cast<std::size_t>(m.form)];
  }
  std::size_t max_rows(const PanelMatrix& m) const {
    return k_.max_rows[static_cast<std::size_t>(m.form)];
  }

  // This thread's share of panels times rows, by tiles, so that no thread has a panel more than
  // another where there are many rows: each(panel, some of the rows).
  template <class Each>
  void share_tiles(std::size_t panels, Range rows, Each each) const {
    const std::size_t tiles = (rows.size() + kTileRows - 1) / kTileRows;
    const Range mine = share(panels * tiles);
    for (std::size_t i = mine.begin; i < mine.end;) {
      const std::size_t first = i % tiles;
      const std::size_t last = std::min(tiles, first + mine.end - i);
      each(i / tiles, Range{rows.begin + first * kTileRows,
                            std::min(rows.end, rows.begin + last * kTileRows)});
      i += last - first;
    }
  }

 private:
  void multiply_panel(const Rows& x, const Product& product, std::size_t panel, Range rows) const;

  const Config& config_;
  FastWorkspace& w_;
  std::size_t part_, parts_;
  FastWorkspace::Scratch& scratch_;
  const Kernels& k_;
};

}  // namespace stagecraft
