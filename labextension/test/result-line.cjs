/**
 * A jest reporter: one last line with the counts, for people and machines that read only the end.
 */
module.exports = class ResultLine {
  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    // At exit, because jest's own summary is written after the reporters.
    process.once('exit', () =>
      process.stdout.write(
        `${results.numPassedTests} passed, ${failed} failed\n`
      )
    );
  }
};
