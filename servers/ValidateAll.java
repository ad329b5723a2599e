import java.nio.file.Files;
import java.nio.file.Path;
import org.roda_project.commons_ip2.validator.EARKSIPValidator;
import org.roda_project.commons_ip2.validator.reporter.ValidationReportOutputJson;

/**
 * Validate several packages in one JVM: commons-ip's own `validate` fails at its second input.
 * Arguments: the specification's version, then for each package its path and that of its report.
 */
public class ValidateAll {
  public static void main(String[] arguments) throws Exception {
    String version = arguments[0];
    for (int at = 1; at < arguments.length; at += 2) {
      try (var stream = Files.newOutputStream(Path.of(arguments[at + 1]))) {
        var report = new ValidationReportOutputJson(Path.of(arguments[at]), stream);
        new EARKSIPValidator(report, version).validate(version);
      }
    }
  }
}
