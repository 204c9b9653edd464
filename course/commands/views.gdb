# What ./stage debug teaches gdb: to step over what is not the student's, and to be quiet.
skip -gfi */src/tensor/*
skip -gfi /usr/include/*
set confirm off
set print thread-events off
define row
  print *($arg0.data_ + $arg1 * $arg0.stride_)@$arg0.cols_
end
document row
row VIEW T: the elements of row T of a MatrixView.
end
