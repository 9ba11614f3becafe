// Blocks that both kernels use.
hotline_pkg.sv
common/hotline_spill_register.sv
common/hotline_ram_1r1w.sv
common/hotline_ram_2rw.sv
common/hotline_ram_lutram.sv
common/hotline_stream_fifo.sv
common/hotline_rr_arbiter.sv
common/hotline_word_packer.sv
common/hotline_read_engine.sv
common/hotline_write_engine.sv
