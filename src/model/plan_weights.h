#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/plan.h"

namespace stagecraft {

// The tensors of a checkpoint that a plan asks for, one per weight, in the order of plan.weights.
// They live as long as the checkpoint. Throws Error naming the tensor where one is missing, has
// another shape or a dtype that is none of F32, F16, BF16 and the quantised ones, or where the
// checkpoint holds a tensor that the plan has no place for.
std::vector<const StoredTensor*> find_weights(const Plan& plan, const Checkpoint& checkpoint);

// The shape of the tensor that holds a weight.
std::vector<std::size_t> stored_shape(const Weight& weight);

// The part of its stored tensor that a weight is: all of it, or some of its rows. If the weight is
// not contiguous (Weight::is_contiguous), only the shape is the weight's; the bytes are all of the
// stored ones, or of its slice of them, and weight_rows reads them.
StoredTensor stored_weight(const Weight& weight, const StoredTensor& stored);

// Rows [first, first + count) of a weight in its own number format, as they are used.
//   stored  what stored_weight returned
//   memory  holds the copied bytes of a weight that is not contiguous; must outlive the result
StoredTensor weight_rows(const Weight& weight, const StoredTensor& stored, std::size_t first,
                         std::size_t count, std::vector<std::byte>& memory);

// A stored norm or bias as f32, with what the plan adds to it.
std::vector<float> read_vector(const Weight& weight, const StoredTensor& stored);

}  // namespace stagecraft
