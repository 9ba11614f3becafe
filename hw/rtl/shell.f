// The shell: registers, jobs, completions, AXI port.
-f common.f
shell/generated/hotline_csr_pkg.sv
shell/generated/hotline_csr.sv
shell/hotline_job_check.sv
shell/hotline_job_control.sv
shell/hotline_record_writer.sv
shell/hotline_axi_mux.sv
shell/hotline_axi_guard.sv
shell/hotline_stats.sv
shell/hotline_shell.sv
