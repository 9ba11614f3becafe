// The fragmenter core.
-f common.f
-f eal.f
fragmenter/hotline_fragment_pkg.sv
fragmenter/hotline_sample_lengths.sv
fragmenter/hotline_splitter.sv
fragmenter/hotline_bounds_check.sv
fragmenter/hotline_cold_picker.sv
fragmenter/hotline_cold_tracker.sv
fragmenter/hotline_assembler.sv
fragmenter/hotline_fragment_reader.sv
fragmenter/hotline_job_closer.sv
fragmenter/hotline_fragmenter.sv
